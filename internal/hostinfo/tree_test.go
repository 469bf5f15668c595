package hostinfo

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tuner/internal/alloctest"
)

func TestParseRelative(t *testing.T) {
	t.Parallel()
	if got, ok := parseRelative(stat); !ok || got != (relative{pid: 77, parent: 1, group: 77, cpu: 1810 * time.Millisecond}) {
		t.Errorf("%+v, %t", got, ok)
	}
	if got, ok := parseRelative("5 (x) Z 3 4 0"); !ok || got != (relative{pid: 5, parent: 3, group: 4, isGone: true}) {
		t.Errorf("a zombie: %+v, %t", got, ok)
	}
	for _, bad := range []string{"", "5", "5 (x", "x (y) S 1 2", "5 (x) S 1", "5 (x) S a b", ") ("} {
		if got, ok := parseRelative(bad); ok {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func FuzzParseRelative(f *testing.F) {
	f.Add(stat)
	f.Add("5 (x) Z 3 4 0")
	f.Fuzz(func(t *testing.T, text string) {
		defer alloctest.Bound(t, len(text))()
		r, ok := parseRelative(text)
		if !ok {
			return
		}
		state := "S"
		if r.isGone {
			state = "Z"
		}
		printed := fmt.Sprintf("%d (c) %s %d %d", r.pid, state, r.parent, r.group)
		if r.cpu > 0 {
			if ticks := int64(r.cpu / tick); ticks < 1<<38 { // a sum of four may not fit into one field
				printed += fmt.Sprintf(" 0 0 0 0 0 0 0 0 %d 0 0 0", ticks)
			} else {
				return
			}
		}
		if again, ok := parseRelative(printed); !ok || again != r {
			t.Errorf("%+v reads back as %+v", r, again)
		}
	})
}

// A shell that starts another process belongs to this process's tree, and so does that process.
// Both form their own group.
func TestTreeAndGroup(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	cmd := exec.Command("/bin/sh", "-c", "sleep 100 & echo $!; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	shell := cmd.Process.Pid
	if tree := Tree(shell); !slices.Equal(tree, []int{shell, child}) {
		t.Errorf("the shell's tree is %v, want %d and %d", tree, shell, child)
	}
	if tree := Tree(os.Getpid()); !slices.Contains(tree, child) {
		t.Errorf("this process's tree is %v, without %d", tree, child)
	}
	if group := Group(shell); len(group) != 2 {
		t.Errorf("the group is %v", group)
	}
	both, err := Usage([]int{shell, child, 1 << 30})
	one, err2 := Process(child)
	if err != nil || err2 != nil || both.RSS <= one.RSS {
		t.Errorf("together %+v, the child %+v, %v, %v", both, one, err, err2)
	}
	if err := syscall.Kill(-shell, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for len(Group(shell)) > 0 {
		time.Sleep(time.Millisecond) // a killed process disappears after a moment
	}
	if usage, err := Usage([]int{1 << 30}); err == nil {
		t.Errorf("no process: %+v", usage)
	}
}
