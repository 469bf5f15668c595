package live

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
)

// guard is a sleeping shell that gives the terminal back if this process ends without doing so: by
// a panic on any goroutine, or killed. It waits at a pipe, which the end of the process closes. The
// runtime writes the report of a crash there too. The shell of the user takes over the terminal's
// mode as soon as the process has ended. So the pipe is smaller than a report of all goroutines: the
// process cannot end before the guard has restored the mode and reads on.
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// allWell tells the guard that the terminal was given back.
const allWell = "all well\n"

// guarding is the guard's program. $1 is the terminal's mode before. Signals to the foreground end
// the campaign, and must not end the guard before it.
const guarding = `trap '' INT QUIT TERM HUP TSTP TTIN TTOU
read -r first
[ "$first" = "all well" ] && exit
stty "$1" <&2
printf '\033[?25h\033[?1049l%s\n' "$first" >&2
exec cat >&2`

// startGuard starts the guard of a terminal. It returns nil on a system without a shell: then only
// an orderly end gives the terminal back.
func startGuard(out, in *os.File) *guard {
	saved := exec.Command("stty", "-g")
	saved.Stdin = in
	before, err := saved.Output()
	if err != nil {
		return nil
	}
	ear, pipe, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer ear.Close()
	g := &guard{exec.Command("sh", "-c", guarding, "sh", string(bytes.TrimSpace(before))), pipe}
	g.cmd.Stdin, g.cmd.Stderr = ear, out
	if err := g.cmd.Start(); err != nil {
		pipe.Close()
		return nil
	}
	shrink(pipe)
	debug.SetTraceback("all")
	_ = debug.SetCrashOutput(pipe, debug.CrashOptions{}) // without it the report is not repeated
	return g
}

// stop ends the guard.
func (g *guard) stop() {
	if g == nil {
		return
	}
	debug.SetTraceback("single") // no less than the user's GOTRACEBACK
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
	_, _ = io.WriteString(g.pipe, allWell)
	_ = g.pipe.Close()
	_ = g.cmd.Wait() // its exit code tells nothing
}
