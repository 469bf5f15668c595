package spec

import (
	"fmt"
	"os"
	"path/filepath"

	"tuner/internal/durable"
	"tuner/internal/exit"
)

// ReadProfile reads and parses the profile in a file. The user can fix every error (exit.Usage).
func ReadProfile(path string) (Profile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Profile{}, exit.Usagef("cannot read the profile %q: %v; 'tuner init MODEL' writes one", path, durable.Cause(err))
	}
	p, err := ParseProfile(filepath.Clean(path), text)
	return p, exit.With(exit.Usage, err)
}

// ReadAnalyze reads and parses an analyze file that may name some report formats. The user can fix
// every error.
func ReadAnalyze(path string, formats []string) (Analyze, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Analyze{}, exit.Usagef("cannot read %q: %v", path, durable.Cause(err))
	}
	a, err := ParseAnalyze(filepath.Clean(path), text, formats)
	return a, exit.With(exit.Usage, err)
}

// noFile is the path of an analysis without a file in messages: the flag that names the folder.
const noFile = "--input"

// AnalyzeOf returns the default analyze file for a campaign's output folder.
func AnalyzeOf(dir string, formats []string) (Analyze, error) {
	a, err := ParseAnalyze(noFile, []byte(fmt.Sprintf("input: %q\n", dir)), formats)
	return a, exit.With(exit.Usage, err)
}

// Source returns the flag of `tuner analyze` that reads the analysis again, and its value: the file, or the campaign's
// folder if there is no file.
func (a Analyze) Source() (flag, path string) {
	if a.Path == "" || a.Path == noFile {
		return noFile, a.Input
	}
	return "-f", a.Path
}

// IsSamePath reports whether two relative or absolute paths lead to the same place.
func IsSamePath(a, b string) bool {
	first, err := filepath.Abs(a)
	if err != nil {
		return false
	}
	second, err := filepath.Abs(b)
	return err == nil && first == second
}
