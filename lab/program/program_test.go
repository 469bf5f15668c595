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
	"path/filepath"
	"syscall"
	"testing"

	"tuner/lab/program"
)

// asProgram is set in the environment of a test binary that is the program under test.
const asProgram = "TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	program.Main("sample", sample)
}

// sample does the action of its first argument.
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
		_ = cmd.Run() // the exit code has the outcome
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

// command returns the sample program with its outputs. It ends with the test.
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

// Or chooses by the first argument, which the other part does not get.
func TestOr(t *testing.T) {
	t.Parallel()
	tell := func(who string) program.Run {
		return func(_ context.Context, args []string, out, _ io.Writer) error {
			_, err := fmt.Fprintf(out, "%s %q", who, args)
			return err
		}
	}
	for want, args := range map[string][]string{
		`first []`:          nil,
		`first ["-a" "b"]`:  {"-a", "b"},
		`other ["-a"]`:      {"b", "-a"},
		`first ["-b" "-a"]`: {"-b", "-a"},
	} {
		var out bytes.Buffer
		if err := program.Or("b", tell("other"), tell("first"))(t.Context(), args, &out, io.Discard); err != nil || out.String() != want {
			t.Errorf("%q: %q, %v; want %q", args, &out, err, want)
		}
	}
}

func TestInFolder(t *testing.T) {
	t.Parallel()
	parent, failed := t.TempDir(), errors.New("failed")
	var dir string
	err := program.InFolder(parent, "work", func(made string) error {
		dir = made
		if info, err := os.Stat(made); err != nil || !info.IsDir() || filepath.Dir(made) != parent {
			t.Errorf("%q is no folder in %q: %v", made, parent, err)
		}
		return errors.Join(os.WriteFile(filepath.Join(made, "file"), nil, 0o644), failed)
	})
	if !errors.Is(err, failed) {
		t.Errorf("error %v, want %v", err, failed)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := program.InFolder(filepath.Join(parent, "none"), "work", nil); err == nil {
		t.Error("made a folder in one that is not there")
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	root, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "lab", "program", "program.go")); err != nil {
		t.Error(err)
	}
}
