package program_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"tuner/lab/program"
)

// asProgram is set in the environment of a test binary that shall be the program under test.
const asProgram = "TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	program.Main("sample", sample)
}

// sample does what its only argument says.
func sample(ctx context.Context, args []string, out, messages io.Writer) error {
	fmt.Fprintf(out, "data %q\n", args)
	fmt.Fprintln(messages, "a message")
	switch args[0] {
	case "fail":
		return errors.New("cannot go on")
	case "help":
		return flag.ErrHelp
	case "wait":
		<-ctx.Done()
		fmt.Fprintln(messages, "cleaned up")
		return ctx.Err()
	}
	return nil
}

func TestMainTellsTheOutcome(t *testing.T) {
	t.Parallel()
	check := func(arg string, wantExit int, wantErr string) {
		t.Helper()
		cmd, out, messages := command(t, arg)
		_ = cmd.Run() // the exit code says it
		if exit := cmd.ProcessState.ExitCode(); exit != wantExit {
			t.Errorf("%s: exit code %d, want %d", arg, exit, wantExit)
		}
		if want := fmt.Sprintf("data [%q]\n", arg); out.String() != want {
			t.Errorf("%s: stdout is %q, want %q", arg, out, want)
		}
		if messages.String() != wantErr {
			t.Errorf("%s: stderr is %q, want %q", arg, messages, wantErr)
		}
	}
	check("succeed", 0, "a message\n")
	check("help", 0, "a message\n")
	check("fail", 1, "a message\nsample: cannot go on\n")
}

// A signal ends the context, not the process.
func TestMainLetsRunCleanUp(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd, _, messages := command(t, "wait")
		cmd.Stdout = nil
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // the program runs
			t.Error(err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
		want := "a message\ncleaned up\nsample: context canceled\n"
		if exit := cmd.ProcessState.ExitCode(); exit != 1 || messages.String() != want {
			t.Errorf("%v: exit code %d, stderr %q; want 1 and %q", signal, exit, messages, want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	check := func(want string, args ...string) {
		t.Helper()
		var messages bytes.Buffer
		flags := flag.NewFlagSet("sample", flag.ContinueOnError)
		rounds := flags.Int("rounds", 5, "how often")
		err := program.Parse(flags, args, &messages)
		if want != fmt.Sprint(err) {
			t.Errorf("%q: error %v, want %s", args, err, want)
		}
		if err == nil && *rounds != 3 {
			t.Errorf("%q: %d rounds, want 3", args, *rounds)
		}
	}
	check("<nil>", "-rounds", "3")
	check(`unexpected argument "more"`, "-rounds", "3", "more")
	check("flag provided but not defined: -laps", "-laps", "3")
}

// command is the sample program with its outputs; it is ended with the test.
func command(t *testing.T, arg string) (cmd *exec.Cmd, out, messages *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, messages = &bytes.Buffer{}, &bytes.Buffer{}
	cmd = exec.CommandContext(t.Context(), self, arg)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = out, messages
	return cmd, out, messages
}
