package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The golden files, by the name of a case. `make -C lab conformance` compares them with the
// servers' answers, and `go test -tags conformance -update` writes them.
var (
	// statusesFile has the status of each answer of the engine.
	statusesFile = filepath.Join("testdata", "statuses.json")
	// differencesFile has the beginning of each answer of the engine that differs from Triton's.
	differencesFile = filepath.Join("testdata", "differences.json")
)

// readGolden reads a golden file.
func readGolden(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read golden answers: %w", err)
	}
	out := map[string]string{}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("cannot read golden answers of %s: %w", file, err)
	}
	return out, nil
}
