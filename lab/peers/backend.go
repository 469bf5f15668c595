package peers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// compileTime is the longest time of a compilation.
const compileTime = time.Minute

// CompileBackend compiles a C file to a Triton backend, in the folder of the model that it serves.
// It needs a C compiler.
func CompileBackend(ctx context.Context, source, folder, name string) error {
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	library := filepath.Join(folder, "libtriton_"+name+".so")
	if text, err := exec.CommandContext(ctx, "cc", "-O2", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot compile %s: %w; the compiler says:\n%s", source, err, text)
	}
	return nil
}
