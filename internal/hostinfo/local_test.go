package hostinfo

import "testing"

func TestIsLocal(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true,
		// addresses for documentation, which no machine has
		"example.org": false, "192.0.2.1": false, "2001:db8::1": false, "": false,
	} {
		if got := IsLocal(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
