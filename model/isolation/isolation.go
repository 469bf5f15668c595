// Package isolation gives the models of one server cores of their own. It divides a machine's cores
// (Divide), makes a host policy of a model's cores (NewPolicy), and lets the instances in a model's
// configuration work by it (Bind). A caller passes the same policies to the server (runner.Job):
//
//	policies, unbound, err := isolation.Policies([]int{2, 6}) // 2 cores for the first model
//	config, err := isolation.Bind(c, policies[0])              // for each model
//
// Only instances are bound: their threads, and those that ONNX Runtime starts for them. The threads
// that a server has in common, which read requests and write answers, run on any core.
//
// The package starts nothing and binds no thread.
package isolation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/ort/sessionoption"
)

// AnyNode is the Node of a policy that leaves memory to the operating system.
const AnyNode = -1

// Policy is a host policy: the cores and the memory of the instances whose groups name it.
type Policy struct {
	Name  string
	Cores []int // ascending, at least one
	Node  int   // NUMA node from which their memory comes; AnyNode: any
}

// Divide divides cores among models: counts[i] of them to model i. The cores are in hostinfo's order,
// in which neighbours are near each other. No core is given twice. The error names counts that the
// machine cannot give.
//
// The model with the most cores chooses first. It takes them from the NUMA node with the fewest free
// cores that are enough, and only from several nodes if no node has enough. So as few models as
// possible straddle nodes. Within a node cores are given in order, so that models with an even
// number of processors get whole physical cores.
func Divide(cores []hostinfo.Core, counts []int) ([][]hostinfo.Core, error) {
	asked := 0
	for i, n := range counts {
		if n < 1 {
			return nil, fmt.Errorf("cannot give model %d of %d %d cores: it needs one at least", i+1, len(counts), n)
		}
		asked += n
	}
	if asked > len(cores) {
		return nil, fmt.Errorf("cannot give %d models %d cores: there are %d", len(counts), asked, len(cores))
	}
	order := make([]int, len(counts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	free := byNode(cores)
	divided := make([][]hostinfo.Core, len(counts))
	for _, i := range order {
		divided[i], free = take(free, counts[i])
	}
	return divided, nil
}

// Policies divides the cores of this machine among models, as Divide does, and returns the host policy
// of each. On a machine with several NUMA nodes they also bind memory. unbound is the reason why they
// do not, if the system forbids it; otherwise it is "".
func Policies(counts []int) (policies []Policy, unbound string, err error) {
	cores, err := hostinfo.Cores()
	if err != nil {
		return nil, "", err
	}
	divided, err := Divide(cores, counts)
	if err != nil {
		return nil, "", err
	}
	bindsMemory := len(byNode(cores)) > 1
	if bindsMemory {
		if err := hostinfo.BindsMemory(); err != nil {
			bindsMemory, unbound = false, err.Error()
		}
	}
	for _, own := range divided {
		policies = append(policies, NewPolicy(own, bindsMemory))
	}
	return policies, unbound, nil
}

// byNode splits a list of cores into those of each node.
func byNode(cores []hostinfo.Core) [][]hostinfo.Core {
	var nodes [][]hostinfo.Core
	for i, c := range cores {
		if i == 0 || c.Node != cores[i-1].Node {
			nodes = append(nodes, nil)
		}
		nodes[len(nodes)-1] = append(nodes[len(nodes)-1], c)
	}
	return nodes
}

// take takes n cores from nodes. It returns the cores that stay free, by node.
func take(nodes [][]hostinfo.Core, n int) (taken []hostinfo.Core, free [][]hostinfo.Core) {
	best := -1
	for i, node := range nodes {
		if len(node) >= n && (best < 0 || len(node) < len(nodes[best])) {
			best = i
		}
	}
	free = slices.Clone(nodes)
	if best >= 0 {
		free[best] = nodes[best][n:]
		return nodes[best][:n:n], free
	}
	// from the fullest nodes, so that there are few of them
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(nodes[b]), len(nodes[a])) })
	for _, i := range order {
		k := min(n-len(taken), len(nodes[i]))
		taken, free[i] = append(taken, nodes[i][:k]...), nodes[i][k:]
	}
	return taken, free
}

// NewPolicy returns the host policy of a model's cores. Its name is made of the cores, so that
// models with the same cores have the same policy. With bindsMemory the memory comes from their
// node, if they are all of one node; a server on a machine with a single node needs no such binding.
func NewPolicy(cores []hostinfo.Core, bindsMemory bool) Policy {
	p := Policy{Node: AnyNode}
	for _, c := range cores {
		p.Cores = append(p.Cores, c.ID)
	}
	slices.Sort(p.Cores)
	p.Name = "cores_" + strings.ReplaceAll(p.ranges(), ",", "_")
	isElsewhere := func(c hostinfo.Core) bool { return c.Node != cores[0].Node }
	if bindsMemory && len(cores) > 0 && !slices.ContainsFunc(cores, isElsewhere) {
		p.Node = cores[0].Node
	}
	return p
}

// ranges returns the cores as tritonserver reads them: 0-3,8-8.
func (p Policy) ranges() string {
	var ranges []string
	for i := 0; i < len(p.Cores); {
		last := i
		for last+1 < len(p.Cores) && p.Cores[last+1] == p.Cores[last]+1 {
			last++
		}
		ranges = append(ranges, fmt.Sprintf("%d-%d", p.Cores[i], p.Cores[last]))
		i = last + 1
	}
	return strings.Join(ranges, ",")
}

// Options returns the values of tritonserver's option --host-policy that define the policy. Each has
// the form <name>,<setting>=<value> (Triton: docs/user_guide/optimization.md).
func (p Policy) Options() []string {
	options := []string{p.Name + ",cpu-cores=" + p.ranges()}
	if p.Node != AnyNode {
		options = append(options, p.Name+",numa-node="+strconv.Itoa(p.Node))
	}
	return options
}

// Equal reports whether two policies are the same.
func (p Policy) Equal(q Policy) bool {
	return p.Name == q.Name && p.Node == q.Node && slices.Equal(p.Cores, q.Cores)
}

// Bind returns c with instances that work by the policy. Sessions whose number of threads is left to
// ONNX Runtime get a thread for each of the cores. Otherwise ONNX Runtime makes one for each core of
// the machine, and binds it to that core, whatever the policy says (1.19, OrtThreadPoolParams). The
// bundled engine needs no such help.
//
// c must have instance groups, as a configuration that a server has completed.
func Bind(c *modelconfig.Config, p Policy) (*modelconfig.Config, error) {
	if len(c.GetInstanceGroup()) == 0 {
		return nil, fmt.Errorf("cannot bind model %q to cores: its configuration has no instance_group", c.GetName())
	}
	options, err := modelconfig.ORTOptions(c)
	if err != nil {
		return nil, err
	}
	if options.Settings.Whole(sessionoption.IntraOpThreads) == 0 {
		options.Settings = options.Settings.With(sessionoption.IntraOpThreads, strconv.Itoa(len(p.Cores)))
		c = modelconfig.SetORTOptions(c, options)
	}
	c = modelconfig.Clone(c)
	for _, g := range c.InstanceGroup {
		if g.GetKind() != configpb.ModelInstanceGroup_KIND_GPU {
			g.HostPolicy = p.Name
		}
	}
	return c, nil
}
