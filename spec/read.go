package spec

import (
	"fmt"
	"os"
	"path/filepath"

	"tuner/internal/exit"
)

// ReadProfile reads and parses the profile in a file. Every mistake is the user's to mend
// (exit.Usage).
func ReadProfile(path string) (Profile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Profile{}, exit.Usagef("cannot read profile: %v", err)
	}
	p, err := ParseProfile(filepath.Clean(path), text)
	return p, exit.With(exit.Usage, err)
}

// ReadAnalyze reads and parses an analyze file that may name some report formats. Every mistake is the user's to mend.
func ReadAnalyze(path string, formats []string) (Analyze, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Analyze{}, exit.Usagef("cannot read %s: %v", path, err)
	}
	a, err := ParseAnalyze(filepath.Clean(path), text, formats)
	return a, exit.With(exit.Usage, err)
}

// AnalyzeOf is the analyze file where only a campaign's output folder is named.
func AnalyzeOf(dir string, formats []string) (Analyze, error) {
	a, err := ParseAnalyze("--input", []byte(fmt.Sprintf("input: %q\n", dir)), formats)
	return a, exit.With(exit.Usage, err)
}
