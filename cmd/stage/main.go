// Command stage writes what stands beside the binary in a package of tuner: man pages, shell
// completion, and ONNX Runtime. `make dist` runs it; see tools/dist.
//
// usage: stage PREFIX DATE [GOOS/GOARCH CACHE]
//
// DATE is that of the man pages, as in RFC 3339. CACHE is the folder in which downloads stay. Without a
// platform there is no ONNX Runtime.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"tuner/internal/cli"
	"tuner/ort/ortlib"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 && len(args) != 4 {
		return errors.New("usage: stage PREFIX DATE [GOOS/GOARCH CACHE]")
	}
	prefix := args[0]
	date, err := time.Parse(time.RFC3339, args[1])
	if err != nil {
		return fmt.Errorf("cannot read the date: %w", err)
	}
	root := cli.Root()
	root.DisableAutoGenTag = true
	if err := errors.Join(manPages(root, filepath.Join(prefix, "share", "man", "man1"), date), completion(root, filepath.Join(prefix, "share"))); err != nil {
		return err
	}
	if len(args) == 2 {
		return nil
	}
	return onnxRuntime(filepath.Join(prefix, "lib", "tuner"), args[2], args[3])
}

func manPages(root *cobra.Command, dir string, date time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &date, Source: "tuner", Manual: "tuner"}, dir)
}

// completion writes the scripts where each shell looks for them below a prefix.
func completion(root *cobra.Command, share string) error {
	for name, write := range map[string]func(string) error{
		"bash-completion/completions/tuner":    func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"zsh/site-functions/_tuner":            root.GenZshCompletionFile,
		"fish/vendor_completions.d/tuner.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
	} {
		path := filepath.Join(share, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := write(path); err != nil {
			return fmt.Errorf("cannot write %s: %w", path, err)
		}
	}
	return nil
}

// onnxRuntime puts the cpu build of a platform below dir. It stays in the cache for the next time.
func onnxRuntime(dir, platform, cache string) error {
	build, err := ortlib.StoreFor(filepath.Join(cache, filepath.FromSlash(platform)), platform).Install(context.Background(), "cpu", os.Stderr)
	if err != nil {
		return err
	}
	from := filepath.Dir(filepath.Dir(build.Dir)) // …/runtimes/cpu@VERSION
	to := filepath.Join(dir, "runtimes", filepath.Base(from))
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
