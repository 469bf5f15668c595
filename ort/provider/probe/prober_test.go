package probe

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/ort/ortlib"
)

// For each way in which a child ends, the answer describes it. The child is a script in place of
// the program.
func TestChildEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script string
		timeout      time.Duration
		want         Answer
	}{
		{"answers", `echo '{"version": "1.2", "providers": ["cpu"]}'`, time.Minute, Answer{Version: "1.2", Providers: []string{"cpu"}}},
		{"aborts", "echo noise >&2; kill -ABRT $$", time.Minute, Answer{Error: "failed: signal: aborted: noise", Crashed: true}},
		{"crashes in Go's words", "echo 'SIGSEGV: segmentation violation' >&2; echo 'goroutine 1' >&2; exit 2", time.Minute,
			Answer{Error: "failed: exit status 2: SIGSEGV: segmentation violation", Crashed: true}},
		{"hangs", "exec sleep 600", 100 * time.Millisecond, Answer{Error: "failed: no answer within 100ms", Crashed: true}},
		{"says nothing", "exit 0", time.Minute, Answer{Error: "unreadable answer of the child process: unexpected end of JSON input", Crashed: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := script(t, tt.script)
			p.Timeout = tt.timeout
			if diff := cmp.Diff(tt.want, p.Try(t.Context(), ortlib.Build{}, "cpu", "")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChildInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := Prober{Program: "/bin/sh", Name: "tuner", Timeout: time.Minute}
	if answer := p.Try(ctx, ortlib.Build{}, "cpu", ""); !strings.Contains(answer.Error, "interrupted") {
		t.Errorf("answer %+v", answer)
	}
}
