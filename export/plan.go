package export

import (
	_ "embed"
	"fmt"
	"net/url"

	"tuner/capacity"
	"tuner/capacity/autoscaler"
	"tuner/export/tuned"
)

// planReadme is the part of the READMEs about a plan.
//
//go:embed readme/plan.md
var planReadme string

// checkPlan finds what keeps a plan from being exported.
func checkPlan(t target, models []tuned.Model, o Options) (errs []error) {
	if address, err := url.Parse(o.Prometheus); err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		errs = append(errs, fmt.Errorf("--prometheus %q: the address of a Prometheus is needed, such as http://prometheus.monitoring.svc:9090", o.Prometheus))
	}
	p := o.Plan
	if p == nil {
		return errs
	}
	if !t.isCluster() {
		return append(errs, fmt.Errorf("--plan: a plan is for a cluster, and %s is none; leave it out", t.name))
	}
	if len(models) != 1 {
		return append(errs, fmt.Errorf("--plan: a plan is for servers of one model, and this export has %d; leave it out, and choose --replicas", len(models)))
	}
	m := models[0]
	if p.Model != m.Name {
		errs = append(errs, fmt.Errorf("--plan: it is for the model %q, and the result is of %q", p.Model, m.Name))
	}
	if p.Best.Configuration != m.Configuration {
		errs = append(errs, fmt.Errorf("--plan: it is for the configuration %q, and the export has %q", p.Best.Configuration, m.Configuration))
	}
	return errs
}

// planNotes say what a plan asks of the cluster.
func planNotes(p *capacity.Plan) (list []string) {
	if p == nil {
		return nil
	}
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if p.Status != capacity.Satisfied {
		add("%s", cell(p.Summary))
	}
	add("The plan counts on machines of the type that it calls %q. Let a node selector keep the servers there.", cell(p.Best.Type))
	if p.Best.Scaling.Scaler == capacity.HPA && p.Best.Scaling.Tolerance > 0 && p.Best.Scaling.Tolerance != autoscaler.DefaultTolerance {
		add("The autoscaler has a tolerance of its own, which needs Kubernetes 1.35. 'tuner plan --default-tolerance' plans without.")
	}
	return list
}

// disruptions returns the number of servers that may be taken away at once, by an upgrade of nodes for
// instance: one without a plan.
func (d Deployment) disruptions() int {
	if d.Plan == nil {
		return 1
	}
	return d.Plan.Spare()
}

// spreadConstraint is a topology spread constraint of pods.
type spreadConstraint struct {
	MaxSkew           int      `yaml:"maxSkew"`
	TopologyKey       string   `yaml:"topologyKey"`
	WhenUnsatisfiable string   `yaml:"whenUnsatisfiable"`
	LabelSelector     labelSet `yaml:"labelSelector,omitempty"`
	// MatchLabelKeys: pods of one revision of the Deployment are spread by themselves
	MatchLabelKeys []string `yaml:"matchLabelKeys"`
}

// spread returns constraints that keep the servers of a plan on different nodes, in different zones. They
// are wishes: a server on a crowded node is better than none. A chart adds the labels of its pods itself (nil
// here), since they have the name of the release.
func (d Deployment) spread(pods map[string]string) []spreadConstraint {
	if d.Plan == nil || d.MaxReplicas < 2 {
		return nil
	}
	var list []spreadConstraint
	for _, key := range []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"} {
		list = append(list, spreadConstraint{1, key, "ScheduleAnyway", labelSet{pods}, []string{"pod-template-hash"}})
	}
	return list
}
