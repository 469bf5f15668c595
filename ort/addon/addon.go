// Package addon has the libraries that a process opens beside ONNX Runtime, by their files: those
// with operators that a model uses. Their code runs in the process, so only the operator of a server
// or of a campaign names them, and never a model or its folder.
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

// AddFlag defines FileFlag.
func AddFlag(flags *pflag.FlagSet, operators *[]string) {
	flags.StringArrayVar(operators, FileFlag, nil, "`library` with operators that the model uses beside ONNX Runtime's; its code runs in the server; may be repeated")
}

// Libraries are the paths of libraries. The zero value has none.
type Libraries struct {
	Operators []string // with operators, in the order in which a session opens them
}

// IsZero reports whether there is no library.
func (l Libraries) IsZero() bool { return len(l.Operators) == 0 }

// Resolve returns the libraries by their absolute paths, so that the system's folders are not searched
// for a bare name. It reports every file that cannot be such a library. The user can fix each error.
func (l Libraries) Resolve() (Libraries, error) {
	var problems []error
	operators := make([]string, len(l.Operators))
	for i, name := range l.Operators {
		path, err := Absolute(name)
		switch {
		case err != nil:
		case slices.Contains(operators[:i], path):
			err = fmt.Errorf("%q is named twice", name)
		default:
			err = checkOperators(name, path)
		}
		operators[i] = path
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return Libraries{}, err
	}
	if len(operators) == 0 {
		return Libraries{}, nil
	}
	return Libraries{operators}, nil
}

// Absolute returns the absolute path of a library, and refuses what is not a regular file.
func Absolute(name string) (string, error) {
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

// Files returns the libraries with their digests, in their order.
func (l Libraries) Files() ([]File, error) {
	var files []File
	for _, path := range l.Operators {
		sum, err := checksum.File(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read library %q: %w", path, err)
		}
		files = append(files, File{path, sum})
	}
	return files, nil
}
