package hostinfo

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel of this machine either allows it, or says why not.
func TestBindsMemory(t *testing.T) {
	t.Parallel()
	if err := BindsMemory(); err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSYS) {
		t.Errorf("%v", err)
	}
}

func TestMemoryPolicyError(t *testing.T) {
	t.Parallel()
	if err := MemoryPolicyError(unix.EPERM); !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "--cap-add=SYS_NICE") {
		t.Errorf("%v", err)
	}
	for _, err := range []error{nil, unix.EINVAL} {
		if got := MemoryPolicyError(err); got != err { //nolint:errorlint // the same value, unwrapped
			t.Errorf("%v became %v", err, got)
		}
	}
}
