package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// wheel writes a Python wheel. It has no Python code: installers put the files of its folder data below the prefix of the environment,
// and those of its folder scripts on the PATH (Python's specification of the binary distribution format).
func (b *build) wheel(t target, files []file) error {
	version := pythonVersion(b.version)
	tag := "py3-none-manylinux_2_28_" + t.machine
	out, err := os.Create(b.name("tuner-%s-%s.whl", version, tag))
	if err != nil {
		return err
	}
	w := &wheelWriter{build: b, zip: zip.NewWriter(out)}
	data, info := fmt.Sprintf("tuner-%s.data/", version), fmt.Sprintf("tuner-%s.dist-info/", version)
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		name := data + "data/" + f.name
		if script, ok := strings.CutPrefix(f.name, "bin/"); ok {
			name = data + "scripts/" + script
		}
		w.add(name, content, f.mode)
	}
	w.add(info+"METADATA", []byte("Metadata-Version: 2.1\nName: tuner\nVersion: "+version+"\n"+
		"Summary: Finds the best way to serve an ONNX model on a machine\nLicense: Apache-2.0\nRequires-Python: >=3.9\n"), 0o644)
	w.add(info+"WHEEL", []byte("Wheel-Version: 1.0\nGenerator: tuner\nRoot-Is-Purelib: false\nTag: "+tag+"\n"), 0o644)
	w.record.WriteString(info + "RECORD,,\n")
	w.add(info+"RECORD", []byte(w.record.String()), 0o644)
	return errors.Join(w.err, w.zip.Close(), out.Close())
}

// pythonVersion turns a version of Go's form without a tag into one of PEP 440: 0.0.0.dev20261127013000. The commit has no place there.
func pythonVersion(version string) string {
	release, pre, found := strings.Cut(version, "-")
	if !found {
		return release
	}
	date, _, _ := strings.Cut(pre, "-")
	return release + ".dev" + date
}

type wheelWriter struct {
	build  *build
	zip    *zip.Writer
	record strings.Builder // path, digest and size of each file
	err    error
}

func (w *wheelWriter) add(name string, content []byte, mode fs.FileMode) {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.build.time}
	header.SetMode(mode)
	entry, err := w.zip.CreateHeader(header)
	if err == nil {
		_, err = entry.Write(content)
	}
	w.err = errors.Join(w.err, err)
	digest := sha256.Sum256(content)
	fmt.Fprintf(&w.record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(digest[:]), len(content))
}
