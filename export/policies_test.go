package export

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/export/tuned/tunedtest"
)

// divided makes an output folder of two models with cores of their own.
func divided(t *testing.T) string {
	t.Helper()
	return tunedtest.Analyzed(t, "..", tunedtest.Two, tunedtest.Divided()...)
}

// The server of models with cores of their own defines their host policies. The user may describe other processors.
// export.json has those of the measured machine, for a verification there.
func TestHostPoliciesOfModels(t *testing.T) {
	t.Parallel()
	check := func(target string, policies []string, want ...string) {
		t.Helper()
		o, out := defaults(divided(t)), filepath.Join(t.TempDir(), "deploy")
		o.HostPolicies = policies
		e, err := Write(target, out, o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range e.Deployment.Arguments {
			if value, is := strings.CutPrefix(a, "--host-policy="); is {
				got = append(got, value)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s with %v (-want +got):\n%s", target, policies, diff)
		}
		m, err := ReadManifest(out)
		if err != nil {
			t.Fatal(err)
		}
		var measured []string
		for _, model := range m.Models {
			measured = append(measured, model.HostPolicies...)
		}
		if diff := cmp.Diff([]string{"cores_0-0,cpu-cores=0-0", "cores_1-1,cpu-cores=1-1"}, measured); diff != "" {
			t.Errorf("%s: policies in export.json (-want +got):\n%s", target, diff)
		}
		isNoted := strings.Contains(strings.Join(e.Deployment.Notes, "\n"), `Model "ranker" has processors of its own on the measured machine (cores_1-1).`)
		if isNoted != slices.Contains(want, "cores_1-1,cpu-cores=1-1") {
			t.Errorf("notes %q", e.Deployment.Notes)
		}
	}
	check(Triton, nil, "cores_0-0,cpu-cores=0-0", "cores_1-1,cpu-cores=1-1")
	check(Compose, []string{"cores_1-1,cpu-cores=5"}, "cores_1-1,cpu-cores=5", "cores_0-0,cpu-cores=0-0")
	check(Kubernetes, []string{"cores_0-0,cpu-cores=2", "cores_1-1,cpu-cores=3"}, "cores_0-0,cpu-cores=2", "cores_1-1,cpu-cores=3")
}

// Where nobody knows the processors before, such models are refused, with what to do.
func TestModelsWithCoresOfTheirOwnAreRefused(t *testing.T) {
	t.Parallel()
	both := []string{"cores_0-0,cpu-cores=0", "cores_1-1,cpu-cores=1"}
	check := func(target string, policies []string, want string, inputs ...string) {
		t.Helper()
		o := defaults(inputs...)
		o.HostPolicies = policies
		_, err := Write(target, filepath.Join(t.TempDir(), "deploy"), o)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
	}
	in := divided(t)
	for _, target := range []string{Kubernetes, Helm, KServe} {
		check(target, nil, "by the host policies cores_0-0, cores_1-1, and only the cluster knows", in)
		check(target, both[:1], "describe each with --host-policy cores_1-1,cpu-cores=FIRST-LAST, choose triton or compose for one server, or search with isolation: shared", in)
		check(target, both, "", in)
	}
	check(AzureML, nil, "Azure starts Triton itself; choose another target", in)
	check(AzureML, both, "Azure starts Triton itself; choose another target", in)
	check(Triton, nil, "so no others have a place there; export it by itself, describe other processors with --host-policy cores_0-0,cpu-cores=FIRST-LAST", in, analyzed(t))
	check(Triton, both, "", in, analyzed(t))
}

// A container may bind memory to a NUMA node only with a capability. Where a server's files are its own, they have it.
func TestMemoryOfNodes(t *testing.T) {
	t.Parallel()
	check := func(target, policy string, wants bool, file string, text string) {
		t.Helper()
		o, out := defaults(analyzed(t)), filepath.Join(t.TempDir(), "deploy")
		o.HostPolicies = []string{policy}
		if _, err := Write(target, out, o); err != nil {
			t.Fatal(err)
		}
		if files := tree(t, out, o.Inputs[0]); strings.Contains(files[file], text) != wants {
			t.Errorf("%s with %s: %q is %t in\n%s", target, policy, text, !wants, files[file])
		}
	}
	for policy, wants := range map[string]bool{"near,numa-node=0": true, "near,cpu-cores=0-1": false} {
		check(Triton, policy, wants, "README.md", " --cap-add SYS_NICE ")
		check(Compose, policy, wants, "compose.yaml", "cap_add:\n      - SYS_NICE")
		check(Kubernetes, policy, wants, "README.md", "A host policy binds memory to a NUMA node. ")
		check(KServe, policy, wants, "README.md", "only with the capability SYS_NICE, which the security standards for pods forbid.")
	}
}
