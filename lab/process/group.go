package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Group is a control group that limits the memory of a server under test, like that of a container.
// The server takes its budget from it.
type Group struct{ folder string }

// NewGroup makes a group of this name, with a limit in bytes. It fails where control groups cannot
// be made, for instance without root. Close removes the group.
func NewGroup(name string, bytes int64) (*Group, error) {
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
		g := &Group{filepath.Join(folder, name)}
		if os.Mkdir(g.folder, 0o755) != nil || os.WriteFile(filepath.Join(g.folder, limit), fmt.Append(nil, bytes), 0o644) != nil {
			g.Close()
			break
		}
		return g, nil
	}
	return nil, errors.New("no control group may be made here")
}

// Enter returns the command by which a shell joins the group. Its children join it too.
func (g *Group) Enter() string { return "echo $$ > " + filepath.Join(g.folder, "cgroup.procs") }

// Close removes the group, whose processes have ended. What it cannot remove is gone after the next
// start of the machine.
func (g *Group) Close() { _ = os.Remove(g.folder) }
