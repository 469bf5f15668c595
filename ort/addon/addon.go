// Package addon has the libraries that a process opens beside ONNX Runtime, by their files: those
// with operators that a model uses, and one with an execution provider. Their code runs in the
// process, so only the operator of a server or of a campaign names them, and never a model or its
// folder.
//
// It stands below everything that starts a process with ONNX Runtime. It checks the files, and passes
// them on as flags. It never opens a library.
package addon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"tuner/internal/checksum"
)

// OperatorFlag is the flag of `tuner serve` and `tuner probe` for a library with operators.
const OperatorFlag = "allow-op-library"

// FileFlag is the flag of verbs that start such processes. It stands for FileField.
const FileFlag = "op-library"

// FileField is the field of profile.yaml, ortsweep.yaml and gate.yaml for libraries with operators.
const FileField = "op_libraries"

// ProviderFlag is the flag of all verbs for a library with an execution provider. It stands for
// ProviderField.
const ProviderFlag = "ep-library"

// ProviderField is the field of profile.yaml and gate.yaml for a library with an execution provider.
const ProviderField = "ep_library"

// AddFlag defines FileFlag.
func AddFlag(flags *pflag.FlagSet, operators *[]string) {
	flags.StringArrayVar(operators, FileFlag, nil, "`library` with operators that the model uses beside ONNX Runtime's; its code runs in the server; may be repeated")
}

// AddFlags defines FileFlag and ProviderFlag.
func AddFlags(flags *pflag.FlagSet, l *Libraries) {
	AddFlag(flags, &l.Operators)
	flags.StringVar(&l.Provider, ProviderFlag, "", "`library` with an execution provider beside ONNX Runtime's, which is called plugin; its code runs in the server")
}

// Names are the names of flags or fields that list libraries, for errors.
type Names struct{ Operators, Provider string }

// InFile returns the fields of files such as profile.yaml.
func InFile() Names { return Names{FileField, ProviderField} }

// InFlags returns the flags of verbs that start processes with ONNX Runtime.
func InFlags() Names { return Names{"--" + FileFlag, "--" + ProviderFlag} }

// OfServe returns the flags of `tuner serve`.
func OfServe() Names { return Names{"--" + OperatorFlag, "--" + ProviderFlag} }

// Libraries are the paths of libraries. The zero value has none.
type Libraries struct {
	Operators []string // with operators, in the order in which a session opens them
	Provider  string   // with an execution provider; "": none
}

// Resolve returns the libraries by their absolute paths, so that the system's folders are not searched
// for a bare name. It reports every file that cannot be such a library. The user can fix each error.
func (l Libraries) Resolve(names Names) (Libraries, error) {
	var resolved Libraries
	var problems []error
	for _, name := range l.Operators {
		path, err := absolute(name)
		switch {
		case err != nil:
		case slices.Contains(resolved.Operators, path):
			err = fmt.Errorf("%q is named twice", name)
		default:
			err = checkOperators(name, path)
		}
		resolved.Operators = append(resolved.Operators, path)
		problems = append(problems, naming(names.Operators, err))
	}
	if l.Provider != "" {
		path, err := absolute(l.Provider)
		if err == nil {
			err = checkProvider(l.Provider, path)
		}
		resolved.Provider = path
		problems = append(problems, naming(names.Provider, err))
	}
	if err := errors.Join(problems...); err != nil {
		return Libraries{}, err
	}
	return resolved, nil
}

// naming puts the flag or field of a library before its error.
func naming(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// absolute returns the absolute path of a library, and refuses what is not a regular file.
func absolute(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("%q: %w", name, err)
	}
	return path, checkFile(name, path)
}

// checkFile refuses what is not a regular file.
func checkFile(name, path string) error {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q: %w", name, err)
	}
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%q is not a file", name)
	}
	return nil
}

// Flags returns the flags with which a child process of tuner opens the libraries.
func (l Libraries) Flags() []string {
	var flags []string
	for _, path := range l.Operators {
		flags = append(flags, "--"+OperatorFlag+"="+path)
	}
	if l.Provider != "" {
		flags = append(flags, "--"+ProviderFlag+"="+l.Provider)
	}
	return flags
}

// Operator returns the library with operators that a configuration means: by its path, or by its
// file's name alone. ok is false if it is none of the libraries.
func (l Libraries) Operator(name string) (path string, ok bool) {
	i := slices.IndexFunc(l.Operators, func(path string) bool { return isMeant(name, path) })
	if i < 0 {
		return "", false
	}
	return l.Operators[i], true
}

func isMeant(name, path string) bool {
	if strings.ContainsRune(name, filepath.Separator) {
		return filepath.Clean(name) == filepath.Clean(path)
	}
	return name == filepath.Base(path)
}

// File is a library with the digest of its content.
type File struct {
	Path   string `json:"path"`   // path of the library
	SHA256 string `json:"sha256"` // digest of the file, in hexadecimal
}

// String names a library for people, with the first digits of its digest.
func (f File) String() string {
	return fmt.Sprintf("%s (%s)", filepath.Base(f.Path), f.SHA256[:min(12, len(f.SHA256))])
}

// Files are the libraries with their digests.
type Files struct {
	Operators []File // in the order of Libraries.Operators
	Provider  *File  // nil: none
}

// Option is an option of `tuner serve` for a library.
type Option struct{ Flag, Path string }

// Options returns the options with which `tuner serve` opens the libraries.
func (f Files) Options() []Option {
	var options []Option
	for _, library := range f.Operators {
		options = append(options, Option{"--" + OperatorFlag, library.Path})
	}
	if f.Provider != nil {
		options = append(options, Option{"--" + ProviderFlag, f.Provider.Path})
	}
	return options
}

// Files reads the libraries.
func (l Libraries) Files() (Files, error) {
	var files Files
	for _, path := range l.Operators {
		f, err := read(path)
		if err != nil {
			return Files{}, err
		}
		files.Operators = append(files.Operators, f)
	}
	if l.Provider != "" {
		f, err := read(l.Provider)
		if err != nil {
			return Files{}, err
		}
		files.Provider = &f
	}
	return files, nil
}

func read(path string) (File, error) {
	sum, err := checksum.File(path)
	if err != nil {
		return File{}, fmt.Errorf("cannot read library %q: %w", path, err)
	}
	return File{path, sum}, nil
}
