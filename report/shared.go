package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tuner/analyze"
	"tuner/spec"
)

// WriteShared is WriteAll for a folder that may hold other files, too, as Model Analyzer's export path does. Its results and plots are
// replaced; another file by a name of tuner's own is refused unless tuner wrote its results there before.
func WriteShared(dir string, r analyze.Result, formats []string) ([]string, error) {
	if err := errors.Join(checkName(r.Header.Model), checkShared(dir)); err != nil {
		return nil, err
	}
	return writeAll(dir, r, formats)
}

func checkShared(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, jsonName)); err == nil {
		return nil
	}
	for _, name := range []string{stagesChartName, markdownName, htmlName, junitName, locationName, configDir, repositoryDir} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return &InputError{fmt.Errorf("cannot write results into %q: it holds %q, which is not tuner's; choose another export_path, or move it away", dir, name)}
		}
	}
	return nil
}

// JoinCSV writes the CSV files of several models into one folder: the rows of each in their order, under one header. Files whose columns
// differ from the first's are left out. It returns the paths of what it wrote.
func JoinCSV(dir string, parts []string, names spec.CSVFiles) ([]string, error) {
	var written []string
	names = names.Named()
	for _, name := range []string{names.Inference.Name, names.GPU.Name, names.Server.Name} {
		var joined, header []byte
		for _, part := range parts {
			text, err := os.ReadFile(filepath.Join(part, resultsDir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return written, fmt.Errorf("cannot join the results: %w", err)
			}
			own, rows, _ := bytes.Cut(text, []byte("\n"))
			if joined == nil {
				header = own
				joined = append(append(joined, own...), '\n')
			}
			if bytes.Equal(own, header) {
				joined = append(joined, rows...)
			}
		}
		if joined == nil {
			continue
		}
		path := filepath.Join(dir, resultsDir, name)
		if err := writeFile(path, func(w io.Writer) error { _, err := w.Write(joined); return err }); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, nil
}
