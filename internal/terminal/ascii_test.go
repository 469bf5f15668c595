package terminal

import "testing"

func TestASCII(t *testing.T) {
	t.Parallel()
	const text, want = "2 × p99 ≤ 30 µs · a → b … −1 – 模", "2 x p99 <= 30 us - a -> b ... -1 - ?"
	if got := ASCII(text); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The first variable that is set names the encoding.
func TestIsASCII(t *testing.T) {
	t.Parallel()
	for want, list := range map[bool][]map[string]string{
		true:  {{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, {"LC_CTYPE": "POSIX"}, {"LANG": "de_DE.ISO-8859-1"}, {"TERM": "dumb", "LANG": "C.UTF-8"}},
		false: {{}, {"LANG": "C.UTF-8"}, {"LC_ALL": "en_US.utf8", "LANG": "C"}},
	} {
		for _, env := range list {
			if got := IsASCII(func(name string) string { return env[name] }); got != want {
				t.Errorf("%v: %t", env, got)
			}
		}
	}
}
