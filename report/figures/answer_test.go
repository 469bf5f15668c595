package figures

import (
	"strings"
	"testing"

	"tuner/analyze"
)

// A journal from before checksums gives the same result with one more sentence. Figures of another
// program do not get this warning.
func TestJournalWithoutChecksums(t *testing.T) {
	t.Parallel()
	const said = "no checksums"
	answer := func(name string) string {
		c, err := analyze.Replay("../../testdata/journals/" + name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := analyze.Analyze(c, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := AnswerOf(r)
		return strings.Join(append([]string{a.Headline}, a.Texts()...), "\n")
	}
	old, now := strings.Fields(answer("format1")), strings.Fields(answer("minilm"))
	if text := strings.Join(old, " "); strings.Count(text, said) != 1 {
		t.Errorf("of an old journal it is said:\n%s", text)
	}
	if text := strings.Join(now, " "); strings.Contains(text, said) || len(now) >= len(old) {
		t.Errorf("of a new journal it is said:\n%s", text)
	}
	if text := unsealedText(analyze.Result{Recorded: "perf.json"}); text != "" {
		t.Errorf("of another program's file it is said: %s", text)
	}
}
