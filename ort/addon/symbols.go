package addon

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// registerOperators is the function that ONNX Runtime calls in a library with operators.
const registerOperators = "RegisterCustomOps"

// createFactories is the function that ONNX Runtime calls in a library with an execution provider.
const createFactories = "CreateEpFactories"

// preload is the loader's variable for libraries that a process opens first.
const preload = "LD_PRELOAD"

// checkOperators reads the symbols of a library, since the loader's own errors name no remedy. It
// knows only the files of Linux, and leaves others to the loader. name is the user's.
func checkOperators(name, path string) error {
	return check(name, path, "operators", registerOperators)
}

// checkProvider is checkOperators for a library with an execution provider.
func checkProvider(name, path string) error {
	return check(name, path, "an execution provider", createFactories)
}

// check refuses a library that does not define a function. of says what that function brings.
func check(name, path, of, function string) error {
	file, err := elf.Open(path)
	switch {
	case errors.As(err, new(*fs.PathError)):
		return fmt.Errorf("%q: %w", name, err)
	case err != nil: // of another form, or too short for one
		return checkForeign(name, path)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return fmt.Errorf("%q: %w", name, err)
	}
	if !slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == function && s.Section != elf.SHN_UNDEF }) {
		return fmt.Errorf("%q is not a library with %s for ONNX Runtime: it has no function %s", name, of, function)
	}
	if needsPython(file, symbols) && !strings.Contains(os.Getenv(preload), "libpython") {
		return fmt.Errorf("%q is a module of Python, and needs Python's own library: set %s=libpython3.N.so.1.0, with the version of an installed Python", name, preload)
	}
	return nil
}

// checkForeign refuses a text, which is the usual mistake, and accepts libraries of other systems.
func checkForeign(name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	defer file.Close()
	var magic [4]byte
	if _, err := file.Read(magic[:]); err != nil || !isMachO(magic) {
		return fmt.Errorf("%q is not a library", name)
	}
	return nil
}

// isMachO reports whether a file begins as a library of macOS: for one processor, or for several.
func isMachO(magic [4]byte) bool {
	return magic == [4]byte{0xcf, 0xfa, 0xed, 0xfe} || magic == [4]byte{0xca, 0xfe, 0xba, 0xbe}
}

// NeedsPython reports whether a library is a module of Python, which a server opens only with Python's
// own library loaded before. It reports false for a file that it cannot read.
func NeedsPython(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	return err == nil && needsPython(file, symbols)
}

// needsPython reports whether a library uses functions of Python that neither it nor a library that
// it names has. Such a module expects to be opened by Python. PyPI's onnxruntime-extensions is one.
func needsPython(file *elf.File, symbols []elf.Symbol) bool {
	libraries, err := file.ImportedLibraries()
	if err != nil || slices.ContainsFunc(libraries, func(name string) bool { return strings.HasPrefix(name, "libpython") }) {
		return false
	}
	return slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
		return s.Section == elf.SHN_UNDEF && elf.ST_BIND(s.Info) == elf.STB_GLOBAL && strings.HasPrefix(s.Name, "Py")
	})
}
