package export

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/export/tuned"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/ort/addon"
)

// tritonName is the name in result.json for the other server of measuredOn.
const tritonName = "triton 2.51.0 at gpu7:8001"

// measuredOn makes the result one of another server than the bundled engine. field is server or
// finals. mode has the values of the profile.
func measuredOn(field, mode string) []string {
	return []string{`"machine_fingerprint"`, fmt.Sprintf(`%q: {"mode": %q}, "machine_fingerprint"`, field, mode),
		`"load": {`, fmt.Sprintf(`"server": %q, "load": {`, tritonName)}
}

// For a server that was running already only the figures are known. This machine's size does not
// limit the cores, and the memory figure covers the server's whole machine.
func TestServers(t *testing.T) {
	t.Parallel()
	const both = `"server": {"mode": "remote"}, "finals": {"mode": "bundled"}, "machine_fingerprint"`
	for _, test := range []struct {
		name     string
		replace  []string
		server   string
		cores    int // of 8 threads; the result's machine has 2 cores
		memory   float64
		machines string
	}{
		{"the bundled engine", nil, "", 2, 290e6, "Formula"},
		{"one that was launched", measuredOn("server", "local"), tritonName, 2, 290e6, "Formula"},
		{"one that ran already", measuredOn("server", "remote"), tritonName, 8, 0, tritonName},
		// the search measured the engine's memory
		{"finals on one that ran already", measuredOn("finals", "remote"), tritonName, 8, 290e6, tritonName},
		{"finals on the bundled engine", []string{`"machine_fingerprint"`, both}, "", 2, 290e6, "Formula"},
	} {
		m := parsed(t, append([]string{`"instance_count": 2`, `"instance_count": 8`}, test.replace...)...)
		d, err := newDeployment(kubernetesTarget(), []tuned.Model{m}, defaults())
		if err != nil {
			t.Fatal(err)
		}
		if d.CPUs != test.cores || m.Memory != test.memory || (view{d}).Machines() != test.machines {
			t.Errorf("%s: %d cores, %g bytes, measured on %q; want %d, %g, %q", test.name, d.CPUs, m.Memory, (view{d}).Machines(), test.cores, test.memory, test.machines)
		}
		remote := test.cores == 8
		if noted := strings.Contains(strings.Join(d.Notes, "\n"), `was measured on "`+tritonName+`", whose machine is unknown`); noted != remote {
			t.Errorf("%s: the notes are %q", test.name, d.Notes)
		}
		if written := d.Manifest().Models[0]; written.Server != test.server || (written.Machine == "") != remote {
			t.Errorf("%s: export.json has the server %q and the machine %q", test.name, written.Server, written.Machine)
		}
	}
}

// The configuration's own memory figure replaces those of its points, as in the report.
func TestMemory(t *testing.T) {
	t.Parallel()
	// 400 MB × 1.3 is 496 MiB. 256 MiB are added, in steps of 64.
	m := parsed(t, "\n      \"memory\": {\n        \"value\": 290000000", "\n      \"memory\": {\n        \"value\": 400000000")
	d := Deployment{Models: []tuned.Model{m}}
	if got := memory(d.Models); got != 768 || !strings.Contains((view{d}).Rows()[0], "400 MB") {
		t.Errorf("%d MiB, %s; want 768 MiB of 400 MB", got, (view{d}).Rows()[0])
	}
}

// Models with operators are loaded one after the other, if there are several.
func TestModelsWithOperatorsLoadInTurn(t *testing.T) {
	t.Parallel()
	model := func(libraries ...string) tuned.Model {
		return tuned.Model{Config: &modelconfig.Config{ModelOperations: &configpb.ModelOperations{OpLibraryFilename: libraries}}}
	}
	const inTurn = "--model-load-thread-count=1"
	for _, c := range []struct {
		models []tuned.Model
		want   bool
	}{
		{[]tuned.Model{model(), model()}, false},
		{[]tuned.Model{model("/a.so"), model()}, false},
		{[]tuned.Model{model("/a.so"), model("/a.so")}, true},
		{[]tuned.Model{{Config: model().Config, Stages: []tuned.Model{model("/a.so"), model("/b.so")}}}, true},
	} {
		if got := slices.Contains(arguments(c.models, Options{}), inTurn); got != c.want {
			t.Errorf("%d models: %s is there: %t", len(c.models), inTurn, got)
		}
	}
}

// The manifest names a model's libraries as the repository has them, also those of one file name.
func TestCarriedOperatorsOfOneName(t *testing.T) {
	t.Parallel()
	m := tuned.Model{Name: "m", Config: &modelconfig.Config{ModelOperations: &configpb.ModelOperations{OpLibraryFilename: []string{"/v1/ops.so", "/v2/ops.so"}}},
		Operators: []addon.File{{Path: "/v2/ops.so", SHA256: "22"}, {Path: "/v1/ops.so", SHA256: "11"}}} // in the campaign's order
	want := []addon.File{{Path: "model_repository/m/operators/ops-2.so", SHA256: "22"}, {Path: "model_repository/m/operators/ops.so", SHA256: "11"}}
	if diff := cmp.Diff(want, Deployment{}.carried(m)); diff != "" {
		t.Error(diff)
	}
}
