package floors

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// listed returns the repository's files that match a pattern of git's, also those that are not yet
// committed.
func listed(t *testing.T, pattern string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", pattern).Output()
	if err != nil {
		t.Skipf("cannot list %s: %v", pattern, err)
	}
	files := strings.Fields(string(out))
	if len(files) == 0 {
		t.Fatalf("there is no %s", pattern)
	}
	return files
}

// texts returns the contents of such files by name, without those that are deleted but not yet
// committed.
func texts(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, file := range listed(t, pattern) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all[file] = text
	}
	return all
}

// product returns the texts of the product's own Go files: no tests, no generated code, and not the
// laboratory.
func product(t *testing.T) map[string][]byte {
	t.Helper()
	all := texts(t, "*.go")
	maps.DeleteFunc(all, func(file string, _ []byte) bool {
		return strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") || strings.HasPrefix(file, "lab/")
	})
	return all
}

// `go mod tidy` does not change go.mod and go.sum of any module. It may download modules for tests
// of dependencies. Without a network the test is skipped.
func TestModulesAreTidy(t *testing.T) {
	t.Parallel()
	for _, file := range listed(t, "*go.mod") {
		t.Run(filepath.Dir(file), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "go", "mod", "tidy", "-diff")
			cmd.Dir = filepath.Join(root, filepath.Dir(file))
			var diff, messages bytes.Buffer
			cmd.Stdout, cmd.Stderr = &diff, &messages
			err := cmd.Run()
			switch {
			case diff.Len() > 0:
				t.Errorf("%s is not tidy; run go mod tidy there:\n%s", file, diff.String())
			case err != nil:
				t.Skipf("cannot decide whether %s is tidy: %v\n%s", file, err, messages.String())
			}
		})
	}
}

// The committed protocol buffer code comes from the generators that tools/proto.sh pins, and from
// the present .proto files. The script writes their digests.
func TestProtocolBufferCodeIsCurrent(t *testing.T) {
	t.Parallel()
	script := read(t, "tools/proto.sh")
	pinned := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `=(\S+)`).FindStringSubmatch(script)
		if m == nil {
			t.Fatalf("tools/proto.sh pins no %s", name)
		}
		return m[1]
	}
	for _, file := range listed(t, "*.pb.go") {
		generator, version := "protoc-gen-go", pinned("protobuf_version")
		if strings.HasSuffix(file, "_grpc.pb.go") {
			generator, version = "protoc-gen-go-grpc", pinned("grpc_version")
		}
		if !regexp.MustCompile(`(?m)^//[ \t-]*` + generator + `\s+` + regexp.QuoteMeta(version) + `$`).MatchString(read(t, file)) {
			t.Errorf("%s is not of %s %s: run make proto", file, generator, version)
		}
	}
	digests := map[string]string{}
	for line := range strings.Lines(read(t, "tools/proto.sums")) {
		digest, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		digests[file] = digest
	}
	files := listed(t, "*.proto")
	for _, file := range files {
		sum := sha256.Sum256([]byte(read(t, file)))
		if digests[file] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has changed since its code was generated: run make proto", file)
		}
	}
	if len(digests) != len(files) {
		t.Errorf("tools/proto.sums has %d files, the repository %d: run make proto", len(digests), len(files))
	}
}

// read returns the text of a file of the repository.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
