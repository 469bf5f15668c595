package framework

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/internal/checksum"
)

// Framework is a row of the table: the files of one framework, and how an ONNX model is made of
// them.
type Framework struct {
	Name   string // PyTorch
	Files  string // its files, for people: .pt, .pth
	Inputs Inputs

	program    string            // in the folder python
	hasFolders bool              // a model may be a folder
	is         func(f file) bool // whether a file is a model of this framework
	// runsCode reports whether loading the file runs code that it names, so that nothing is started
	// without permission. nil: never, or the program finds out.
	runsCode func(path string) bool
	explain  func(r result, python string, s Source) error    // refusals of its own; nil for the others
	byHand   func(python string, s Source, out string) string // commands that do the same by hand
	differs  string                                           // follows the text about outputs that differ
}

// Inputs tells whether the user describes a model's inputs.
type Inputs int

// The cases of Inputs.
const (
	InputsKnown    Inputs = iota // the file describes them completely
	InputsOptional               // the file describes them; the user may give shapes
	InputsNeeded                 // the file does not describe them
)

// table lists the frameworks.
func table() []Framework {
	return []Framework{pyTorch(), tensorFlow(), scikitLearn(), xgBoost(), lightGBM()}
}

// All describes the frameworks with their files, for people.
func All() string {
	var list []string
	for _, f := range table() {
		list = append(list, fmt.Sprintf("%s (%s)", f.Name, f.Files))
	}
	return strings.Join(list, ", ")
}

// Of returns the framework of a file or folder. It returns false for what belongs to none, such as
// ONNX files. A file that does not exist is judged by its name.
func Of(path string) (Framework, bool) {
	f := look(path)
	rows := table()
	i := slices.IndexFunc(rows, func(row Framework) bool { return row.is(f) })
	if i < 0 {
		return Framework{}, false
	}
	return rows[i], true
}

// file has the marks by which a file's framework is recognised.
type file struct {
	path     string
	isFolder bool
	head     []byte // the beginning of a regular file
}

// headSize is enough for the beginning of XGBoost's JSON files.
const headSize = 256

func look(path string) file {
	f := file{path: path}
	info, err := os.Stat(path)
	if err != nil {
		return f
	}
	f.isFolder = info.IsDir()
	if !info.Mode().IsRegular() {
		return f
	}
	if r, err := os.Open(path); err == nil {
		defer r.Close()
		f.head, _ = io.ReadAll(io.LimitReader(r, headSize)) // what cannot be read is reported when it is needed
	}
	return f
}

// has reports whether the name has one of these endings.
func (f file) has(endings ...string) bool {
	return slices.Contains(endings, strings.ToLower(filepath.Ext(f.path)))
}

// holds reports whether a folder has a file of that name.
func (f file) holds(name string) bool {
	info, err := os.Stat(filepath.Join(f.path, name))
	return err == nil && info.Mode().IsRegular()
}

// ExportName returns the name of a model's ONNX file, without folder.
func ExportName(path string) string {
	name := filepath.Base(filepath.Clean(path))
	if f := look(path); !f.isFolder {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	return name + ".onnx"
}

// Digest returns the digest of a model's file, or of all files in its folder with their names.
func Digest(path string) (string, error) {
	if !look(path).isFolder {
		return checksum.File(path)
	}
	sum := sha256.New()
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		digest, err := checksum.File(name)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(path, name)
		fmt.Fprintf(sum, "%q %s\n", inside, digest)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}
