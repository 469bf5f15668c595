package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// journals: damaged, edited or mixed records, and secrets that they must not contain.
func journals() []attack {
	return []attack{
		{"A5", "400 changes of one byte of a journal", "analyze refuses it with exit code 2, or its figures are as before", changedBytes},
		{"A5", "lines of a journal lost, doubled, swapped, zeroed, cut, of another journal", "refused with exit code 2, or resumed as after a kill", editedLines},
		{"A5", "the profile in the header changed, checksums made anew", "refused: spec.sha256 does not fit", changedSpec},
		{"A5", "a window of 2^63-1 ns, checksums made anew", "refused with exit code 2", impossible},
		{"A5", "tokens in headers, arguments, environment and URLs of a profile", "none is in the journal or in a report", secrets},
	}
}

// campaign measures a small campaign in the scene, and returns its journal.
func (s *scene) campaign(ctx context.Context, more string) ([]byte, error) {
	text := "model: m.onnx\noutput: out\nsearch: {strategy: grid, budget: {time: 1m, trials: 4}, window: 100ms}\nspace: {intra_op_threads: [1, 2], instance_count: [1, 2]}\nload: {concurrency: [1, 2]}\n" + more
	if err := errors.Join(s.write(sample(s, "mlp"), "m.onnx"), s.write([]byte(text), "profile.yaml")); err != nil {
		return nil, err
	}
	o, err := s.tunes(ctx, "profile", "-f", "profile.yaml")
	if err != nil || o.code != 0 {
		return nil, errors.Join(fmt.Errorf("tuner profile ended with %d: %s", o.code, last(o.out)), err)
	}
	return os.ReadFile(s.path("out", "journal.jsonl"))
}

// analyzed analyzes a journal in its own folder. result holds the figures, without times and paths.
func (s *scene) analyzed(ctx context.Context, journal []byte) (result string, o outcome, err error) {
	_ = os.RemoveAll(s.path("look")) // remaining files are overwritten
	if err := s.write(journal, "look", "journal.jsonl"); err != nil {
		return "", o, err
	}
	if o, err = s.tunes(ctx, "analyze", "-f", "look.yaml"); err != nil || o.code != 0 {
		return "", o, err
	}
	data, err := os.ReadFile(s.path("look", "result.json"))
	return string(data), o, err
}

const lookFile = "input: look\nformats: [table]\n"

// started returns the campaign whose journal is attacked.
func (s *scene) started(ctx context.Context) (journal []byte, result string, err error) {
	if journal, err = s.campaign(ctx, ""); err != nil {
		return nil, "", err
	}
	if err := s.write([]byte(lookFile), "look.yaml"); err != nil {
		return nil, "", err
	}
	result, o, err := s.analyzed(ctx, journal)
	if err != nil || o.code != 0 {
		return nil, "", errors.Join(fmt.Errorf("tuner analyze ended with %d: %s", o.code, last(o.out)), err)
	}
	return journal, result, nil
}

func changedBytes(ctx context.Context, s *scene) (string, error) {
	journal, want, err := s.started(ctx)
	if err != nil {
		return "", err
	}
	r := rand.New(rand.NewPCG(5, 5))
	refused, same, tried := 0, 0, 0
	for begin := time.Now(); tried < 400 && time.Since(begin) < 60*time.Second; tried++ {
		changed := bytes.Clone(journal)
		at := r.IntN(len(changed))
		for changed[at] == journal[at] {
			changed[at] = []byte{changed[at] ^ 1<<r.IntN(8), byte(r.Uint32()), '9'}[r.IntN(3)]
		}
		got, o, err := s.analyzed(ctx, changed)
		switch {
		case err != nil:
			return "", err
		case o.code == 2:
			refused++
		case o.code == 0 && got == want:
			same++
		default:
			return "", fmt.Errorf("byte %d: %q → %q: exit code %d and other figures: %s", at, journal[at], changed[at], o.code, last(o.out))
		}
	}
	return fmt.Sprintf("of %d: %d refused, %d without effect", tried, refused, same), nil
}

func editedLines(ctx context.Context, s *scene) (string, error) {
	journal, _, err := s.started(ctx)
	if err != nil {
		return "", err
	}
	other, err := (&scene{options: s.options, dir: s.path("second")}).campaign(ctx, "")
	if err != nil {
		return "", err
	}
	lines, others := bytes.SplitAfter(journal, []byte("\n")), bytes.SplitAfter(other, []byte("\n"))
	const n = 3 // the attacked record: a trial
	join := func(parts ...[][]byte) []byte {
		var all []byte
		for _, p := range parts {
			all = append(all, bytes.Join(p, nil)...)
		}
		return all
	}
	zeros := make([]byte, len(lines[n]))
	zeros[len(zeros)-1] = '\n'
	for name, text := range map[string][]byte{
		"lost": join(lines[:n], lines[n+1:]), "doubled": join(lines[:n+1], lines[n:]), "swapped": join(lines[:n], [][]byte{lines[n+1], lines[n]}, lines[n+2:]),
		"zeroed": join(lines[:n], [][]byte{zeros}, lines[n+1:]), "of another journal": join(lines[:n], others[n:n+1], lines[n+1:]),
		"another's begin": join(others[:n], lines[n:]), "an empty line": join(lines[:n], [][]byte{[]byte("\n")}, lines[n:]), "without a header": join(lines[1:]),
		"cut in the middle": join(lines[:n], [][]byte{append(bytes.Clone(lines[n][:len(lines[n])/2]), '\n')}, lines[n+1:]),
		"a newer format":    bytes.Replace(journal, []byte(`"format":2`), []byte(`"format":9`), 1), "empty": nil, "no journal": []byte("hello\n"),
	} {
		_, o, err := s.analyzed(ctx, text)
		if err != nil {
			return "", err
		}
		if o.code != 2 {
			return "", fmt.Errorf("%s: exit code %d: %s", name, o.code, last(o.out))
		}
	}
	// A kill leaves a torn last line.
	torn := journal[:len(journal)-20]
	if _, o, err := s.analyzed(ctx, torn); err != nil || o.code != 0 {
		return "", errors.Join(fmt.Errorf("a torn last line: exit code %d: %s", o.code, last(o.out)), err)
	}
	return "12 refused, a torn last line left out", nil
}

// sealed computes the checksums of a journal again, as docs/reference/journal.md describes.
func sealed(journal []byte) []byte {
	var out []byte
	before := ""
	for line := range bytes.Lines(journal) {
		at := bytes.LastIndex(line, []byte(`,"sum":`))
		if at < 0 {
			return journal
		}
		digest := sha256.Sum256(append([]byte(before), line[:at]...))
		before = hex.EncodeToString(digest[:])[:16]
		out = fmt.Appendf(out, "%s,\"sum\":%q}\n", line[:at], before)
	}
	return out
}

// forged checks that a journal with correct checksums is refused for its content.
func forged(ctx context.Context, s *scene, change func([]byte) []byte, words string) (string, error) {
	journal, _, err := s.started(ctx)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(sealed(journal), journal) {
		return "", errors.New("the checksums cannot be made anew")
	}
	changed := change(journal)
	if bytes.Equal(changed, journal) {
		return "", errors.New("nothing was changed: the journal has another form")
	}
	_, o, err := s.analyzed(ctx, sealed(changed))
	if err != nil {
		return "", err
	}
	return o.refused(2, words)
}

func changedSpec(ctx context.Context, s *scene) (string, error) {
	return forged(ctx, s, func(j []byte) []byte {
		return bytes.Replace(j, []byte("instance_count: [1, 2]"), []byte("instance_count: [1, 3]"), 1)
	}, "sha256")
}

func impossible(ctx context.Context, s *scene) (string, error) {
	return forged(ctx, s, func(j []byte) []byte {
		at := bytes.LastIndex(j, []byte(`"duration":`))
		if at < 0 {
			return j
		}
		at += len(`"duration":`)
		end := at
		for end < len(j) && j[end] >= '0' && j[end] <= '9' {
			end++
		}
		return append(append(bytes.Clone(j[:at]), "9223372036854775807"...), j[end:]...)
	}, "")
}

func secrets(ctx context.Context, s *scene) (string, error) {
	if err := s.add("m", "mlp", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"m"})
	if err != nil {
		return "", err
	}
	journal, err := s.campaign(ctx, fmt.Sprintf("runner: {mode: remote, url: %q, metrics_url: \"http://user:%s@%s/metrics?key=%s\", headers: {Authorization: \"Bearer %s\", X-Api-Key: %s}}\n",
		v.at.GRPC, secret, v.at.Metrics, secret, secret, secret))
	if err != nil {
		return "", err
	}
	if o, err := s.tunes(ctx, "analyze", "--input", "out"); err != nil || o.code != 0 {
		return "", errors.Join(fmt.Errorf("tuner analyze ended with %d: %s", o.code, last(o.out)), err)
	}
	if bytes.Contains(journal, []byte(secret)) || !bytes.Contains(journal, []byte("[hidden]")) {
		return "", errors.New("a token is in the journal")
	}
	return s.without(secret, "out")
}

// without checks that no file of a folder contains a text.
func (s *scene) without(text, folder string) (string, error) {
	files := 0
	var walk func(dir string) error
	walk = func(dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := dir + "/" + e.Name()
			if e.IsDir() {
				err = errors.Join(err, walk(path))
				continue
			}
			data, errRead := os.ReadFile(path)
			if err = errors.Join(err, errRead); bytes.Contains(data, []byte(text)) {
				return fmt.Errorf("%s holds it", strings.TrimPrefix(path, s.dir))
			}
			files++
		}
		return err
	}
	err := walk(s.path(folder))
	return fmt.Sprintf("in none of %d files", files), err
}

// trials counts the trials in a journal.
func (s *scene) trials(elements ...string) (n int, err error) {
	lines, err := s.lines(elements...)
	if err != nil {
		return 0, err
	}
	for _, line := range lines {
		var r struct{ Kind string }
		if json.Unmarshal([]byte(line), &r) == nil && r.Kind == "trial" {
			n++
		}
	}
	return n, nil
}
