package modelrepo

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// pairOf builds the variants of an encoder and a ranker.
func pairOf(t *testing.T, root string) (encoder, ranker Variant) {
	t.Helper()
	var built []Variant
	for _, text := range []string{`name: "encoder" output { name: "y" label_filename: "labels.txt" }`, `name: "ranker"`} {
		v, err := Build(root, source(t), config(t, text))
		if err != nil {
			t.Fatal(err)
		}
		built = append(built, v)
	}
	return built[0], built[1]
}

func TestTogether(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	encoder, ranker := pairOf(t, root)
	var g Group
	var made errgroup.Group
	groups := make([]Group, 4)
	for i := range groups { // several processes race
		made.Go(func() (err error) {
			groups[i], err = Together(root, encoder, ranker)
			return err
		})
	}
	if err := made.Wait(); err != nil {
		t.Fatal(err)
	}
	if g = groups[0]; g.Dir != filepath.Join(root, g.Digest) || !slices.Equal(g.Models, []string{"encoder", "ranker"}) {
		t.Errorf("group %+v", g)
	}
	want := tree(t, encoder.Dir)
	for path, content := range tree(t, ranker.Dir) {
		want[path] = content
	}
	if diff := cmp.Diff(want, tree(t, g.Dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	checkSameFile(t, filepath.Join(encoder.Dir, "encoder/1/model.onnx"), filepath.Join(g.Dir, "encoder/1/model.onnx"))
	checkSameFile(t, filepath.Join(ranker.Dir, "ranker/1/data/more.bin"), filepath.Join(g.Dir, "ranker/1/data/more.bin"))
	for _, other := range groups {
		if diff := cmp.Diff(g, other); diff != "" {
			t.Errorf("another process made another group:\n%s", diff)
		}
	}
	if swapped, err := Together(root, ranker, encoder); err != nil || swapped.Dir != g.Dir {
		t.Errorf("in another order: %+v, %v", swapped, err)
	}
	if names, err := Names(g.Dir); err != nil || !slices.Equal(names, []string{"encoder", "ranker"}) {
		t.Errorf("models %v, %v", names, err)
	}
	checkOnly(t, root, slices.Sorted(slices.Values([]string{encoder.Digest, ranker.Digest, g.Digest}))...)
}

func TestTogetherRefuses(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	encoder, ranker := pairOf(t, root)
	again, err := Build(root, source(t), config(t, `name: "ranker" max_batch_size: 4`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Together(root, ranker, again); err == nil || !strings.Contains(err.Error(), `two models under the name "ranker"`) {
		t.Errorf("one name: %v", err)
	}
	if _, err := Together(root); err == nil {
		t.Error("a group of no models")
	}
	one, err := Together(root, encoder, ranker)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := Together(root, encoder, again); err != nil || other.Dir == one.Dir {
		t.Errorf("another configuration gives the same group, %v", err)
	}
	if err := os.Remove(filepath.Join(one.Dir, "ranker", "1", "w.bin")); err != nil {
		t.Fatal(err)
	}
	if _, err := Together(root, encoder, ranker); err == nil || !strings.Contains(err.Error(), "was changed; delete it") {
		t.Errorf("a changed group: %v", err)
	}
}

// A model is replaced beside another, whose files do not even change their identity.
func TestExchange(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), filepath.Join(t.TempDir(), "live")
	encoder, ranker := pairOf(t, root)
	for _, v := range []Variant{encoder, ranker, ranker} {
		if err := Exchange(dir, v); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(filepath.Join(dir, "encoder", configName))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Build(root, source(t), config(t, `name: "ranker" max_batch_size: 4`))
	if err != nil {
		t.Fatal(err)
	}
	if err := Exchange(dir, other); err != nil {
		t.Fatal(err)
	}
	want := tree(t, encoder.Dir)
	for path, content := range tree(t, other.Dir) {
		want[path] = content
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	after, err := os.Stat(filepath.Join(dir, "encoder", configName))
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the encoder changed, %v", err)
	}
	checkOnly(t, dir, "encoder", "ranker")
}
