package isolation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
)

// machine has processors in nodes of some physical cores, with two processors each. They are numbered
// as Linux does: the second processors of all cores follow the first ones.
func machine(physical ...int) []hostinfo.Core {
	all := 0
	for _, n := range physical {
		all += n
	}
	var cores []hostinfo.Core
	first := 0
	for node, n := range physical {
		for id := first; id < first+n; id++ {
			cores = append(cores, hostinfo.Core{ID: id, Sibling: id, Node: node}, hostinfo.Core{ID: id + all, Sibling: id, Node: node})
		}
		first += n
	}
	return cores
}

func ids(divided [][]hostinfo.Core) [][]int {
	var all [][]int
	for _, cores := range divided {
		var own []int
		for _, c := range cores {
			own = append(own, c.ID)
		}
		all = append(all, own)
	}
	return all
}

func TestDivide(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cores  []hostinfo.Core
		counts []int
		want   [][]int
	}{
		"one each":      {machine(1), []int{1, 1}, [][]int{{0}, {1}}},
		"whole cores":   {machine(4), []int{2, 4}, [][]int{{2, 6}, {0, 4, 1, 5}}},
		"not all":       {machine(4), []int{2}, [][]int{{0, 4}}},
		"a node each":   {machine(2, 2), []int{4, 4}, [][]int{{0, 4, 1, 5}, {2, 6, 3, 7}}},
		"fewest free":   {machine(2, 2), []int{1, 3, 4}, [][]int{{7}, {2, 6, 3}, {0, 4, 1, 5}}},
		"over the edge": {machine(2, 2), []int{6, 2}, [][]int{{0, 4, 1, 5, 2, 6}, {3, 7}}},
	} {
		got, err := Divide(c.cores, c.counts)
		if diff := cmp.Diff(c.want, ids(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// Each model gets as many cores as asked, and no core belongs to two. If the models fit into the nodes
// as whole shares of the largest first, none straddles nodes needlessly: a model has cores of several
// nodes only if no node had enough left.
func TestDivideGivesNoCoreTwice(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		cores := machine(1+random.IntN(4), 1+random.IntN(4), 1+random.IntN(4))
		var counts []int
		for left := len(cores); left > 0; {
			n := 1 + random.IntN(left)
			counts, left = append(counts, n), left-n
			if random.IntN(3) == 0 {
				break
			}
		}
		got, err := Divide(cores, counts)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int]bool{}
		for i, own := range got {
			if len(own) != counts[i] {
				t.Fatalf("%v: model %d has %d cores", counts, i, len(own))
			}
			for _, c := range own {
				if seen[c.ID] {
					t.Fatalf("%v: core %d is given twice", counts, c.ID)
				}
				seen[c.ID] = true
			}
		}
		// The largest share comes first: it straddles nodes only if it is larger than each.
		largest := slices.Index(counts, slices.Max(counts))
		nodes := map[int]bool{}
		for _, c := range got[largest] {
			nodes[c.Node] = true
		}
		roomiest := slices.MaxFunc(byNode(cores), func(a, b []hostinfo.Core) int { return len(a) - len(b) })
		if len(nodes) > 1 && counts[largest] <= len(roomiest) {
			t.Fatalf("%v on %v: the largest share has %d nodes", counts, cores, len(nodes))
		}
	}
}

// A machine with two nodes: a model whose processors are all of one node gets its memory from there.
func TestMachine(t *testing.T) {
	t.Parallel()
	m := Machine{Cores: machine(2, 2), BindsMemory: true}
	if diff := cmp.Diff([]int{4, 4}, m.Nodes()); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if got := m.String(); got != "0-1,4-5 and 2-3,6-7, with memory of their nodes" {
		t.Errorf("the machine is described as %q", got)
	}
	for _, c := range []struct {
		counts []int
		want   []string // options of each policy
	}{
		{[]int{4, 4}, []string{"cores_0-1_4-5,cpu-cores=0-1,4-5 cores_0-1_4-5,numa-node=0", "cores_2-3_6-7,cpu-cores=2-3,6-7 cores_2-3_6-7,numa-node=1"}},
		// 6 processors are of two nodes
		{[]int{6, 2}, []string{"cores_0-2_4-6,cpu-cores=0-2,4-6", "cores_3-3_7-7,cpu-cores=3-3,7-7 cores_3-3_7-7,numa-node=1"}},
	} {
		policies, err := m.Policies(c.counts)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range policies {
			got = append(got, strings.Join(p.Options(), " "))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.counts, diff)
		}
	}
	if _, err := m.Policies([]int{8, 1}); err == nil {
		t.Error("9 of 8 processors are given")
	}
	text, err := json.Marshal(m)
	var again Machine
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if diff := cmp.Diff(m, again); err != nil || diff != "" {
		t.Errorf("after a journal: %v (-want +got):\n%s", err, diff)
	}
}

func TestDivideRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts []int
		want   string
	}{
		{[]int{1, 0}, "cannot give model 2 of 2 0 cores: it needs one at least"},
		{[]int{2, 1}, "cannot give 2 models 3 cores: there are 2"},
	} {
		if _, err := Divide(machine(1), c.counts); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %q", c.counts, err, c.want)
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	cores := machine(2, 2)
	for _, c := range []struct {
		cores []hostinfo.Core
		binds bool
		want  []string
	}{
		{cores[:1], false, []string{"cores_0-0,cpu-cores=0-0"}},
		{cores[:4], true, []string{"cores_0-1_4-5,cpu-cores=0-1,4-5", "cores_0-1_4-5,numa-node=0"}},
		{cores[4:6], true, []string{"cores_2-2_6-6,cpu-cores=2-2,6-6", "cores_2-2_6-6,numa-node=1"}},
		{cores[4:6], false, []string{"cores_2-2_6-6,cpu-cores=2-2,6-6"}},
		{cores[2:6], true, []string{"cores_1-2_5-6,cpu-cores=1-2,5-6"}}, // of two nodes
	} {
		p := NewPolicy(c.cores, c.binds)
		if diff := cmp.Diff(c.want, p.Options()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if !p.Equal(NewPolicy(c.cores, c.binds)) || p.Equal(NewPolicy(cores[7:], c.binds)) {
			t.Errorf("%s does not equal itself alone", p.Name)
		}
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	const head = `name: "m" backend: "onnxruntime" `
	p := NewPolicy(machine(2)[:2], false)
	threads := func(n int) string {
		return fmt.Sprintf(`parameters { key: "intra_op_thread_count" value { string_value: "%d" } }`, n)
	}
	for name, c := range map[string]struct{ config, want string }{
		"threads are counted": {`instance_group { kind: KIND_CPU count: 2 }`, `instance_group { kind: KIND_CPU count: 2 host_policy: "cores_0-0_2-2" } ` + threads(2)},
		"threads are given":   {`instance_group { kind: KIND_CPU } ` + threads(1), `instance_group { kind: KIND_CPU host_policy: "cores_0-0_2-2" } ` + threads(1)},
		"another policy":      {`instance_group { kind: KIND_CPU host_policy: "old" } ` + threads(1), `instance_group { kind: KIND_CPU host_policy: "cores_0-0_2-2" } ` + threads(1)},
		"a GPU too": {`instance_group { kind: KIND_GPU } instance_group { kind: KIND_CPU } ` + threads(4),
			`instance_group { kind: KIND_GPU } instance_group { kind: KIND_CPU host_policy: "cores_0-0_2-2" } ` + threads(4)},
	} {
		given, want := parse(t, head+c.config), parse(t, head+c.want)
		before := modelconfig.Clone(given)
		got, err := Bind(given, p)
		if err != nil || !modelconfig.Equal(want, got) {
			t.Errorf("%s: %v\n got %v\nwant %v", name, err, got, want)
		}
		if !modelconfig.Equal(before, given) {
			t.Errorf("%s: the given configuration changed", name)
		}
	}
	if _, err := Bind(parse(t, head), p); err == nil || !strings.Contains(err.Error(), "no instance_group") {
		t.Errorf("without groups: %v", err)
	}
}

func parse(t *testing.T, text string) *modelconfig.Config {
	t.Helper()
	c, err := modelconfig.Parse("config.pbtxt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
