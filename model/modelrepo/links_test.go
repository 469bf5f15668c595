package modelrepo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// replaceByLink replaces a file by a link to target.
func replaceByLink(t *testing.T, path, target string) {
	t.Helper()
	if err := errors.Join(os.Remove(path), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
}

// Neither a variant nor a repository contains files from outside a foreign folder to which its
// links lead.
func TestLinksOut(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(makeTree(t, map[string]string{"id_rsa": "TOP-SECRET"}), "id_rsa")
	check := func(file string) {
		m := source(t)
		put(t, m.Folder, "warmup/seed", "0")
		c := config(t, `name: "m" output { label_filename: "labels.txt" } model_warmup { inputs { key: "x" value { input_data_file: "seed" } } }`)
		replaceByLink(t, filepath.Join(m.Folder, file), secret)
		to := t.TempDir()
		_, buildErr := Build(filepath.Join(to, "variants"), m, c)
		for _, err := range []error{buildErr, Write(filepath.Join(to, "repository"), m, c)} {
			if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "copy the file") {
				t.Errorf("%s: error %v", file, err)
			}
		}
		for path, content := range tree(t, to) {
			if strings.Contains(content, "SECRET") {
				t.Errorf("%s: the secret is in %s", file, path)
			}
		}
	}
	check("w.bin")
	check("data/more.bin")
	check("labels.txt")
	check("warmup/seed")
}

// A link inside the folder gives its target file.
func TestLinksWithin(t *testing.T) {
	t.Parallel()
	m := source(t)
	put(t, m.Folder, "real/labels", "cow\n")
	replaceByLink(t, filepath.Join(m.Folder, "labels.txt"), filepath.Join(m.Folder, "real", "labels"))
	replaceByLink(t, filepath.Join(m.Folder, "w.bin"), "data/more.bin")
	v, err := Build(t.TempDir(), m, config(t, `name: "m" output { label_filename: "labels.txt" }`))
	if err != nil {
		t.Fatal(err)
	}
	got := tree(t, filepath.Join(v.Dir, "m"))
	if got["labels.txt"] != "cow\n" || got["1/w.bin"] != "more" {
		t.Errorf("the variant holds %q", got)
	}
}

// A variant's folder is tuner's own, but others may have written into it.
func TestCopyTakesNoLinks(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(makeTree(t, map[string]string{"id_rsa": "TOP-SECRET"}), "id_rsa")
	v, err := Build(t.TempDir(), source(t), config(t, `name: "m"`))
	if err != nil {
		t.Fatal(err)
	}
	replaceByLink(t, filepath.Join(v.Dir, "m", "1", "w.bin"), secret)
	if err := Copy(t.TempDir(), v); err == nil || !strings.Contains(err.Error(), secret) {
		t.Errorf("error %v", err)
	}
}

// A pipe as a label file would block until it has a writer.
func TestNoPipes(t *testing.T) {
	t.Parallel()
	m := source(t)
	labels := filepath.Join(m.Folder, "labels.txt")
	if err := errors.Join(os.Remove(labels), syscall.Mkfifo(labels, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := Build(t.TempDir(), m, config(t, `name: "m" output { label_filename: "labels.txt" }`))
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}
