package profile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/orttest"
	"tuner/profile"
	"tuner/spec"
)

// The default configuration names the profile's libraries. A configuration may name some of them, and
// no others.
func TestOperatorsOfAConfiguration(t *testing.T) {
	t.Parallel()
	library, model := orttest.TwiceLibrary(t), orttest.TwiceModel(t)
	const refused = "is not opened, since its code would run in the server"
	for name, c := range map[string]struct{ config, libraries, want string }{
		"none":                        {"", "", ""},
		"the profile's":               {"", library, library},
		"by its name":                 {`model_operations { op_library_filename: "libtwice.so" }`, library, library},
		"by its path":                 {`model_operations { op_library_filename: "` + library + `" }`, library, library},
		"of the configuration alone":  {`model_operations { op_library_filename: "` + library + `" }`, "", refused},
		"another one":                 {`model_operations { op_library_filename: "/other/libtwice.so" }`, library, refused},
		"the profile's is no library": {"", model, "op_libraries: "},
	} {
		dir := t.TempDir()
		text := "model: " + model + "\n"
		if c.config != "" {
			if err := os.WriteFile(filepath.Join(dir, "config.pbtxt"), []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			text += "config: config.pbtxt\n"
		}
		if c.libraries != "" {
			text += "op_libraries: [" + c.libraries + "]\n"
		}
		p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s, err := profile.OpenSubject(p, profile.Place{})
		if err != nil {
			if !errors.As(err, new(*profile.InputError)) || c.want == "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			continue
		}
		if diff := cmp.Diff(c.want, strings.Join(s.Config.GetModelOperations().GetOpLibraryFilename(), ",")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
