// Package isolation gives the models of one server cores of their own. It divides a machine's cores
// (Divide), makes a host policy of a model's cores (NewPolicy), and lets the instances in a model's
// configuration work by it (Bind). A caller passes the same policies to the server (runner.Job):
//
//	machine, unbound, err := isolation.ThisMachine()
//	policies, err := machine.Policies([]int{2, 6}) // 2 cores for the first model
//	config, err := isolation.Bind(c, policies[0])  // for each model
//
// Only instances are bound: their threads, and those that ONNX Runtime starts for them. The threads
// that a server has in common, which read requests and write answers, run on any core.
//
// The package starts nothing and binds no thread.
package isolation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tuner/internal/hostinfo"
	"tuner/internal/nodes"
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
// As few models as possible straddle NUMA nodes (nodes.Place). Within a node cores are given in order,
// the most cores first, so that models with an even number of processors get whole physical cores.
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
	by := byNode(cores)
	free := make([]int, len(by))
	for i, node := range by {
		free[i] = len(node)
	}
	divided := make([][]hostinfo.Core, len(counts))
	for i, shares := range nodes.Place(free, counts) {
		for _, s := range shares {
			divided[i] = append(divided[i], by[s.Node][s.From:s.From+s.Count]...)
		}
	}
	return divided, nil
}

// Machine has the processors that the models of a server divide among them.
type Machine struct {
	// processors on which the server may run, in the order of nodes and physical cores
	Cores []hostinfo.Core `json:"cores"`
	// the memory of a model whose processors are all of one node comes from there
	BindsMemory bool `json:"binds_memory,omitempty"`
}

// ThisMachine returns the machine of this process. On one with several NUMA nodes the policies also bind
// memory. unbound is the reason why they do not, if the system forbids it; otherwise it is "".
func ThisMachine() (m Machine, unbound string, err error) {
	if m.Cores, err = hostinfo.Cores(); err != nil {
		return m, "", err
	}
	if m.BindsMemory = len(byNode(m.Cores)) > 1; m.BindsMemory {
		if err := hostinfo.BindsMemory(); err != nil {
			m.BindsMemory, unbound = false, err.Error()
		}
	}
	return m, unbound, nil
}

// Nodes returns the number of processors of each NUMA node.
func (m Machine) Nodes() []int {
	var list []int
	for _, node := range byNode(m.Cores) {
		list = append(list, len(node))
	}
	return list
}

// Policies divides the processors among models, as Divide does, and returns the host policy of each.
func (m Machine) Policies(counts []int) ([]Policy, error) {
	divided, err := Divide(m.Cores, counts)
	if err != nil {
		return nil, err
	}
	var policies []Policy
	for _, own := range divided {
		policies = append(policies, NewPolicy(own, m.BindsMemory))
	}
	return policies, nil
}

// String lists the processors for people, those of each node: "0-3,8-11".
func (m Machine) String() string {
	var parts []string
	for _, node := range byNode(m.Cores) {
		parts = append(parts, NewPolicy(node, false).List())
	}
	text := strings.Join(parts, " and ")
	if m.BindsMemory {
		text += ", with memory of their nodes"
	}
	return text
}

// byNode splits a list of cores into those of each node.
func byNode(cores []hostinfo.Core) [][]hostinfo.Core {
	var list [][]hostinfo.Core
	for i, c := range cores {
		if i == 0 || c.Node != cores[i-1].Node {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], c)
	}
	return list
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

// List returns the cores as the kernel lists them: 0-3,8.
func (p Policy) List() string { return hostinfo.FormatCPUs(p.Cores) }

// Options returns the values of tritonserver's option --host-policy that define the policy. Each has
// the form <name>,<setting>=<value> (Triton: docs/user_guide/optimization.md).
func (p Policy) Options() []string {
	options := []string{p.Name + ",cpu-cores=" + p.ranges()}
	if p.Node != AnyNode {
		options = append(options, p.Name+",numa-node="+strconv.Itoa(p.Node))
	}
	return options
}

// Options returns the values of --host-policy that define policies.
func Options(policies []Policy) []string {
	var list []string
	for _, p := range policies {
		list = append(list, p.Options()...)
	}
	return list
}

// Flags returns the flags of a server that define policies, as tuner serve and tritonserver take them.
func Flags(policies []Policy) []string {
	list := Options(policies)
	for i := range list {
		list[i] = Flag(list[i])
	}
	return list
}

// Flag returns the flag of a server with a value of --host-policy.
func Flag(value string) string { return "--host-policy=" + value }

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
