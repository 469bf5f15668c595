// Package memgroup limits the memory of child processes by a control group, as a container does. Tests
// and the laboratory use it.
package memgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Group is a control group with a memory limit. tuner takes its memory budget from it.
type Group struct{ folder string }

// New makes a group with a limit in bytes. kind is the beginning of its name. New fails where control
// groups cannot be made, for instance without root. Close removes the group.
func New(kind string, bytes int64) (*Group, error) {
	mine, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, errors.New("no control groups")
	}
	for line := range strings.Lines(string(mine)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		folder, limit := "", ""
		switch {
		case len(parts) == 3 && parts[1] == "memory":
			folder, limit = "/sys/fs/cgroup/memory"+parts[2], "memory.limit_in_bytes"
		case len(parts) == 3 && parts[1] == "" && !strings.Contains(string(mine), ":memory:"):
			folder, limit = "/sys/fs/cgroup"+parts[2], "memory.max"
		default:
			continue
		}
		return limited(folder, kind, limit, bytes)
	}
	return nil, errors.New("no control groups of memory")
}

// limited makes a group in the folder of another one. limit is the file of the limit.
func limited(parent, kind, limit string, bytes int64) (*Group, error) {
	folder, err := os.MkdirTemp(parent, kind+"-")
	if err != nil {
		return nil, fmt.Errorf("no control group may be made here: %w", err)
	}
	g := &Group{folder}
	if err := os.WriteFile(filepath.Join(folder, limit), fmt.Append(nil, bytes), 0o644); err != nil {
		return nil, errors.Join(fmt.Errorf("no control group may be limited here: %w", err), g.Close())
	}
	return g, nil
}

// Enter returns the command by which a shell joins the group. Its children join it too.
func (g *Group) Enter() string { return "echo $$ > " + filepath.Join(g.folder, "cgroup.procs") }

// Close removes the group, whose processes must have ended. What it cannot remove is gone after the
// next start of the machine.
func (g *Group) Close() error { return os.Remove(g.folder) }
