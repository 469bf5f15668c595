package buildfacts

import (
	"runtime/debug"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Settings: []debug.BuildSetting{
		{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}, {Key: "vcs.revision", Value: "0123abc"},
		{Key: "vcs.time", Value: "2026-11-27T01:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	want := "commit    0123abc, with changes\ndate      2026-11-27T01:00:00Z\nplatform  linux/arm64\ngo        go1.26.8\n"
	if got := describe(info); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// A build outside of a repository knows nothing of a commit.
	info.Settings = info.Settings[:2]
	if got, want := describe(info), "platform  linux/arm64\ngo        go1.26.8\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
