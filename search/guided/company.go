package guided

import "math"

// How the logarithm of what instances do together differs from what they would do undisturbed, within the cores.
const (
	companySD    = 0.3  // of what is alike in pools that are alike
	companyOwnSD = 0.06 // of what is not
	companyReach = 1.0  // on the scale of the logarithms of instances, and of threads in all
	strangers    = 0.6  // correlation of pools whose engines have no value in common
)

// company is what is expected of the instances of a pool beside what they would do undisturbed, as a logarithm.
type company struct{ mean, variance float64 }

// kinshipOfPools is the covariance of two pools' logarithms.
func kinshipOfPools(a, b *pool) float64 {
	d := math.Log(float64(a.instances) / float64(b.instances))
	all := d + math.Log(float64(max(a.threads, 1))/float64(max(b.threads, 1)))
	same, values := 0.0, float64(len(a.engine.values))
	for i, v := range a.engine.values {
		if v == b.engine.values[i] {
			same++
		}
	}
	alike := 1.0
	if values > 0 {
		alike = strangers + (1-strangers)*same/values
	}
	k := companySD * companySD * alike * math.Exp(-(d*d+all*all)/(2*companyReach*companyReach))
	if a == b {
		k += companyOwnSD * companyOwnSD
	}
	return k
}

// foreseeCompany predicts, for all pools of several instances that are not ready, what their instances do to each other, from those
// that are: memory bandwidth, cores and a GPU are shared in much the same way whatever the engine.
func (g *Guided) foreseeCompany() {
	var ready []*pool
	for _, p := range g.pools {
		if p.isReady() && p.instances > 1 {
			ready = append(ready, p)
		}
	}
	factor, weights := make([][]float64, len(ready)), make([]float64, len(ready))
	for i, p := range ready {
		factor[i] = make([]float64, i+1)
		for j := range factor[i] {
			factor[i][j] = kinshipOfPools(p, ready[j])
		}
		last := len(p.outline.sizes) - 1
		undisturbed := g.undisturbed(p, p.engine.alone.curve(), p.outline.sizes[last])
		weights[i] = math.Log(p.outline.most[last] / undisturbed)
	}
	cholesky(factor)
	solve(factor, weights)
	reduced := make([]float64, len(ready))
	for _, p := range g.pools {
		if p.isReady() || p.instances == 1 {
			continue
		}
		p.company = company{}
		for i, q := range ready {
			reduced[i] = kinshipOfPools(p, q)
		}
		p.company.mean = dot(reduced, weights)
		forward(factor, reduced)
		p.company.variance = max(kinshipOfPools(p, p)-dot(reduced, reduced), 0)
	}
}
