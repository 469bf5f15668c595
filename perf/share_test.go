package perf

import (
	"errors"
	"testing"
	"time"

	"tuner/internal/testserver"
	"tuner/measure"
	"tuner/runner/load"
	"tuner/runner/wire"
)

// overGRPC is target over gRPC.
func overGRPC(t *testing.T, o testserver.Options) Target {
	t.Helper()
	return aim(t, wire.Options{Address: listen(t, o).GRPC, Protocol: wire.GRPC}, 64)
}

// Only many small requests in flight over gRPC share connections, unless the user sets a number.
func TestShare(t *testing.T) {
	t.Parallel()
	at := listen(t, testserver.Options{})
	for name, c := range map[string]struct {
		wire        wire.Options
		size        int // size of a request's input
		answer      int64
		concurrency int
		want        int
	}{
		"many":            {wire.Options{Address: at.GRPC, Protocol: wire.GRPC}, 64, 64, 8, 4},
		"few":             {wire.Options{Address: at.GRPC, Protocol: wire.GRPC}, 64, 64, 7, 1},
		"open loop":       {wire.Options{Address: at.GRPC, Protocol: wire.GRPC, Share: 6}, 64, 64, 0, 1},
		"large requests":  {wire.Options{Address: at.GRPC, Protocol: wire.GRPC}, 16 << 10, 64, 8, 1},
		"large answers":   {wire.Options{Address: at.GRPC, Protocol: wire.GRPC}, 64, 16 << 10, 8, 1},
		"unknown answers": {wire.Options{Address: at.GRPC, Protocol: wire.GRPC}, 64, -1, 8, 1},
		"user's":          {wire.Options{Address: at.GRPC, Protocol: wire.GRPC, Share: 6}, 16 << 10, -1, 7, 6},
		"user's, too few": {wire.Options{Address: at.GRPC, Protocol: wire.GRPC, Share: 1 << 40}, 64, 64, 2, 2},
		"user's, none":    {wire.Options{Address: at.GRPC, Protocol: wire.GRPC, Share: 1}, 64, 64, 16, 1},
		"streams":         {wire.Options{Address: at.GRPC, Protocol: wire.GRPCStream, Share: 6}, 64, 64, 8, 1},
		"HTTP":            {wire.Options{Address: at.HTTP, Share: 6}, 64, 64, 8, 1},
	} {
		target := aim(t, c.wire, c.size)
		target.AnswerSize = c.answer
		conn, err := target.dialer(measure.Load{Concurrency: c.concurrency})(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.Slots(); got != c.want {
			t.Errorf("%s: %d requests share a connection, want %d", name, got, c.want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// However requests share connections, each is sent and counted once, and fails separately.
func TestRunOverSharedConnections(t *testing.T) {
	t.Parallel()
	for _, share := range []int{0, 1, 3} {
		o := counting(overGRPC(t, testserver.Options{Law: testserver.Deterministic(ms), Faults: testserver.Faults{FailEvery: 10}}), 400)
		o.Target.Options.Share = share
		o.Levels = Levels{Start: 10, End: 10, Step: 1}
		report, err := Run(t.Context(), o)
		if err != nil || len(report.Levels) != 1 {
			t.Fatalf("%d levels, %v", len(report.Levels), err)
		}
		if l := report.Levels[0]; l.Measurement.Errors() != 40 || l.Measurement.Windows[0].Requests != 360 || l.Resent != 0 {
			t.Errorf("share %d: %d requests, %d errors, %d sent once more", share, l.Measurement.Windows[0].Requests, l.Measurement.Errors(), l.Resent)
		}
	}
}

// Servers that end or do not answer are noticed over shared connections too.
func TestBadServersOverSharedConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults testserver.Faults
		want   any
	}{
		"dies":   {testserver.Faults{DieAfter: 200}, new(*load.LostError)},
		"silent": {testserver.Faults{Silent: true}, new(*load.HungError)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := counting(overGRPC(t, testserver.Options{Faults: c.faults}), 400)
			o.Timeout, o.Levels = 300*time.Millisecond, Levels{Start: 8, End: 8, Step: 1}
			report, err := Run(t.Context(), o)
			if !errors.As(err, c.want) {
				t.Errorf("ended with %v", err)
			}
			for _, l := range report.Levels {
				// with those in flight
				if n := l.Measurement.Windows[0].Requests; n > 200+8 || l.Verdict != VerdictFailed {
					t.Errorf("%d requests, verdict %q", n, l.Verdict)
				}
			}
		})
	}
}
