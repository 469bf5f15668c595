//go:build conformance

package conformance

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// TestLoad loads every model of a repository, good and bad. It compares the answer and the later
// state of the model on both servers.
func TestLoad(t *testing.T) {
	models, err := ReadModels(filepath.Join("testdata", "repositories", "load.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPair(t, newRepository(t, "load"), "--model-control-mode=explicit")
	for _, m := range models {
		for _, c := range LoadCases(m) {
			if !p.ended {
				t.Run(c.Name, func(t *testing.T) { judged.compare(t, p, c) })
			}
		}
	}
	if p.ended {
		return
	}
	answers, errs := p.ask(t.Context(), Case{Verb: "POST", Target: "/v2/repository/index", Parts: []string{""}})
	if errs != [2]error{} {
		t.Fatal(errs)
	}
	entries := [2]map[string]string{indexEntries(t, answers[0]), indexEntries(t, answers[1])}
	for _, m := range models {
		name := indexCase(m)
		t.Run(name, func(t *testing.T) {
			judged.judge(t, name, p.repository, [2]Answer{{Text: entries[0][m.Name]}, {Text: entries[1][m.Name]}})
		})
	}
}

// indexEntries splits the answer of the index into the entries of the models.
func indexEntries(t *testing.T, answer Answer) map[string]string {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(answer.Text), &list); err != nil {
		t.Fatalf("cannot read the index: %v\n%s", err, answer)
	}
	entries := map[string]string{}
	for _, entry := range list {
		text, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		entries[nameOf(entry)] += string(text)
	}
	return entries
}
