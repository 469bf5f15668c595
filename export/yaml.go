package export

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// written has the files of one target. Each is made from typed values, and no text is pasted into
// YAML.
type written struct {
	files []file
	err   error
}

// addDocuments writes documents into a YAML file, one after the other, with a comment above them.
func (w *written) addDocuments(path, comment string, documents ...any) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", comment)
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	for _, d := range documents {
		if err := encoder.Encode(d); err != nil && w.err == nil {
			w.err = fmt.Errorf("cannot write %q: %w", path, err)
		}
	}
	if err := encoder.Close(); err != nil && w.err == nil {
		w.err = fmt.Errorf("cannot write %q: %w", path, err)
	}
	w.add(path, b.Bytes())
}

// add adds a file that is no YAML.
func (w *written) add(path string, text []byte) { w.files = append(w.files, file{path, text}) }
