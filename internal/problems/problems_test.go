package problems_test

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"tuner/internal/problems"
)

func TestList(t *testing.T) {
	t.Parallel()
	var list problems.List
	list.Add(nil)
	if list.Err() != nil || !list.IsEmpty() {
		t.Errorf("an empty list: %v", list.Err())
	}
	list.Add(io.EOF)
	for i := range problems.Most - 1 {
		list.Addf("problem %d", i)
	}
	if n := len(strings.Split(list.Err().Error(), "\n")); n != problems.Most {
		t.Errorf("%d lines of %d problems", n, problems.Most)
	}
	list.Add(io.EOF)
	list.Addf("one more")
	lines := strings.Split(list.Err().Error(), "\n")
	if len(lines) != problems.Most+1 || lines[problems.Most] != "and 2 more" {
		t.Errorf("too many problems read %q", lines)
	}
	if !errors.Is(list.Err(), io.EOF) {
		t.Error("the problems are lost")
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	if got := problems.Quote([]string{"a", "b"}); got != `["a" "b"]` {
		t.Error(got)
	}
	names := make([]string, problems.Most+5)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	if got := problems.Quote(names); !strings.HasPrefix(got, `["0" "1"`) || !strings.HasSuffix(got, `"19" and 5 more]`) {
		t.Error(got)
	}
}
