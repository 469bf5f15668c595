package mcp

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"unicode/utf8"

	"tuner/internal/children"
	"tuner/internal/terminal"
)

// The limits of what a call returns, in bytes.
const (
	mostText = 64 << 10 // text for the assistant, of which some thousand words fill its memory
	mostJSON = 16 << 20 // what a verb prints; a comparison of two campaigns has some hundred KB
)

// ownVariables are the variables of tuner that its children get. The others stand for flags of
// verbs, and the arguments of a call decide those.
var ownVariables = []string{"TUNER_ORT_LIBRARY", "TUNER_CACHE"}

// command makes the command of a verb.
func (s *server) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := children.Command(ctx, s.Program, args...)
	cmd.Dir = s.roots[0]
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "TUNER_") || slices.Contains(ownVariables, name) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	return cmd
}

// flag is a flag of a verb with its value; "": it is not given.
type flag struct{ name, value string }

// withFlags appends flags to arguments. A value never stands in an argument of its own, where it could be
// taken for a flag.
func withFlags(args []string, flags ...flag) []string {
	for _, f := range flags {
		if f.value != "" {
			args = append(args, "--"+f.name+"="+f.value)
		}
	}
	return args
}

// verb runs a verb and returns its standard output. If it fails, the error is its message.
func (s *server) verb(ctx context.Context, args ...string) ([]byte, error) {
	cmd := s.command(ctx, args...)
	out, messages := &limited{most: mostJSON}, &children.Tail{IsGo: true}
	cmd.Stdout, cmd.Stderr = out, messages
	err := children.Run(cmd)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, verbError(messages, err)
	case out.isCut:
		return nil, errors.New("the result is too large for this protocol; run the verb in a shell")
	}
	return out.text, nil
}

// programPrefix begins the message with which the program ends.
const programPrefix = "tuner: "

// verbError is the message with which a verb ended.
func verbError(messages *children.Tail, err error) error {
	text := messages.String()
	if i := strings.LastIndex("\n"+text, "\n"+programPrefix); i >= 0 {
		text = text[i+len(programPrefix):]
	}
	if text = strings.TrimSpace(text); text == "" {
		return err
	}
	return errors.New(terminal.Plain(text))
}

// limited keeps the beginning of what is written to it.
type limited struct {
	most  int // bytes
	text  []byte
	isCut bool
}

// Write never fails.
func (l *limited) Write(p []byte) (int, error) {
	kept := p[:min(len(p), l.most-len(l.text))]
	l.text, l.isCut = append(l.text, kept...), l.isCut || len(kept) < len(p)
	return len(p), nil
}

// bounded shortens a text for an assistant, and removes what would steer a terminal.
func bounded(text string) string {
	text = terminal.Plain(text)
	if len(text) <= mostText {
		return text
	}
	cut := mostText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "\n… (shortened)"
}
