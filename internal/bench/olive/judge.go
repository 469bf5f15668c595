package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"reflect"
	"strings"

	"tuner/stats"
)

//go:embed judge.py
var judgeScript string

// verdict is what the judge measured: the default, and what each answer is beside it.
type verdict struct {
	base  float64 // seconds, median of the default
	marks []mark  // in the order of the answers
}

// mark is the judge's figures of one answer.
type mark struct {
	seconds float64        // median; 0: there was no answer
	gain    stats.Estimate // how many times faster than the default
	cosine  float64        // with the outputs of the default
	same    bool           // the answer is the default itself: it was not measured again
}

// job is what the judge reads.
type job struct {
	Rows     string    `json:"rows"`
	Rounds   int       `json:"rounds"`
	Window   float64   `json:"window_seconds"`
	Settings []setting `json:"settings"`
}

// figures are what the judge prints.
type figures struct {
	Seconds [][]float64 `json:"seconds"`
	Cosine  []float64   `json:"cosine"`
}

// judge measures the default and the answers in turn, in one process. An answer that says what another says is measured once.
func judge(ctx context.Context, o options, p programs, s subject, answers []answer) (verdict, error) {
	j := job{Rows: s.rows, Rounds: o.rounds, Window: o.window.Seconds(), Settings: []setting{{Model: s.path}}}
	places := make([]int, len(answers)) // of each answer among the settings
	for i, a := range answers {
		if places[i] = -1; a.setting != nil {
			places[i] = place(&j, *a.setting)
		}
	}
	input, err := json.Marshal(j)
	if err != nil {
		return verdict{}, fmt.Errorf("cannot tell the judge what to measure: %w", err)
	}
	cmd := exec.CommandContext(ctx, p.judge, "-c", judgeScript)
	cmd.Stdin = bytes.NewReader(input)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil {
		return verdict{}, fmt.Errorf("cannot judge the answers: %w; its messages:\n%s", err, complaints.String())
	}
	var f figures
	if err := json.Unmarshal(output, &f); err != nil || len(f.Seconds) != len(j.Settings) || len(f.Cosine) != len(j.Settings) {
		return verdict{}, fmt.Errorf("cannot read the judge's figures: %v in %q", err, output)
	}
	return f.verdict(places), nil
}

// place returns where a setting stands in the job, as a further one if it is new.
func place(j *job, s setting) int {
	s.Precision = ""
	if len(s.Entries) == 0 {
		s.Entries = nil
	}
	for i, known := range j.Settings {
		if reflect.DeepEqual(known, s) {
			return i
		}
	}
	j.Settings = append(j.Settings, s)
	return len(j.Settings) - 1
}

// verdict compares with the default, which is the first; places are those of the answers, -1 for none.
func (f figures) verdict(places []int) verdict {
	v := verdict{base: stats.Median(f.Seconds[0])}
	for _, at := range places {
		if at < 0 {
			v.marks = append(v.marks, mark{})
			continue
		}
		v.marks = append(v.marks, mark{seconds: stats.Median(f.Seconds[at]), gain: stats.PairedRatio(f.Seconds[0], f.Seconds[at]),
			cosine: f.Cosine[at], same: at == 0})
	}
	return v
}
