package modelconfig

import (
	"slices"
	"strconv"
	"strings"

	"tuner/model/modelconfig/configpb"
)

// defaultCPUInstances is Triton's default number of CPU instances of an onnxruntime model.
const defaultCPUInstances = 2

// maxInstances is the largest number of instances of a group on one device. Each is a session with
// threads and a copy of the model's weights.
const maxInstances = 1024

// maxModelInstances is the largest number of a model's instances in all groups and on all devices.
const maxModelInstances = 8 * maxInstances

// completeInstanceGroups gives every group a name, a kind, a count and its GPUs.
func completeInstanceGroups(c *Config, gpus int) error {
	if c.GetEnsembleScheduling() != nil {
		return nil
	}
	if len(c.GetInstanceGroup()) == 0 {
		c.InstanceGroup = []*configpb.ModelInstanceGroup{{Name: c.GetName()}}
	}
	for i, g := range c.GetInstanceGroup() {
		g.Name = orDefault(g.GetName(), c.GetName()+"_"+strconv.Itoa(i))
		if g.GetKind() == configpb.ModelInstanceGroup_KIND_AUTO {
			g.Kind = kindHere(g, gpus)
		}
		if g.GetCount() < 1 {
			g.Count = defaultCount(c, g.GetKind())
		}
		if g.GetKind() == configpb.ModelInstanceGroup_KIND_GPU && len(g.GetGpus()) == 0 {
			for id := range gpus {
				g.Gpus = append(g.Gpus, int32(id))
			}
		}
		if err := checkGPUs(c.GetName(), g, gpus); err != nil {
			return err
		}
	}
	return nil
}

// Instances returns the number of instances in a configuration's groups on all their devices. A
// group on GPUs without a list is on gpus of them.
func Instances(c *Config, gpus int) int {
	n := 0
	for _, g := range c.GetInstanceGroup() {
		devices := len(g.GetGpus())
		if devices == 0 && g.GetKind() == configpb.ModelInstanceGroup_KIND_GPU {
			devices = gpus
		}
		n += int(g.GetCount()) * max(1, devices)
	}
	return n
}

// kindHere resolves KIND_AUTO. It is GPU if the server has GPUs and all listed ones exist.
func kindHere(g *configpb.ModelInstanceGroup, gpus int) configpb.ModelInstanceGroup_Kind {
	absent := func(id int32) bool { return id < 0 || int(id) >= gpus }
	if gpus == 0 || slices.ContainsFunc(g.GetGpus(), absent) {
		return configpb.ModelInstanceGroup_KIND_CPU
	}
	return configpb.ModelInstanceGroup_KIND_GPU
}

func defaultCount(c *Config, kind configpb.ModelInstanceGroup_Kind) int32 {
	if kind == configpb.ModelInstanceGroup_KIND_CPU && c.GetBackend() == Backend {
		return defaultCPUInstances
	}
	return 1
}

// checkGPUs refuses GPUs that the server does not have. Texts are Triton's, which names its least compute
// capability. ONNX Runtime's builds for CUDA need no less.
func checkGPUs(model string, g *configpb.ModelInstanceGroup, gpus int) error {
	if g.GetKind() != configpb.ModelInstanceGroup_KIND_GPU {
		return nil
	}
	if len(g.GetGpus()) == 0 {
		return refuse("instance group %s of model %s has kind KIND_GPU but no GPUs are available", g.GetName(), model)
	}
	for _, id := range g.GetGpus() {
		if id < 0 || int(id) >= gpus {
			return refuse("instance group %s of model %s specifies invalid or unsupported gpu id %d. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: %s",
				g.GetName(), model, id, idsBelow(gpus))
		}
	}
	return nil
}

// idsBelow lists the ids of GPUs, which begin at 0.
func idsBelow(gpus int) string {
	ids := make([]string, gpus)
	for id := range ids {
		ids[id] = strconv.Itoa(id)
	}
	return strings.Join(ids, ", ")
}

// checkInstanceGroups makes the checks that do not depend on the server's GPUs.
func checkInstanceGroups(c *Config) []error {
	if c.GetEnsembleScheduling() != nil {
		return nil
	}
	if len(c.GetInstanceGroup()) == 0 {
		return []error{refuse("must specify one or more 'instance group's for %s", c.GetName())}
	}
	var errs []error
	for _, g := range c.GetInstanceGroup() {
		if err := checkInstanceGroup(c, g); err != nil {
			errs = append(errs, err)
		}
	}
	if n := Instances(c, 0); len(errs) == 0 && n > maxModelInstances {
		errs = append(errs, refuse("the instance groups of model %s have %d instances; this engine makes %d at most for a model", c.GetName(), n, maxModelInstances))
	}
	return errs
}

func checkInstanceGroup(c *Config, g *configpb.ModelInstanceGroup) error {
	switch g.GetKind() {
	case configpb.ModelInstanceGroup_KIND_CPU, configpb.ModelInstanceGroup_KIND_MODEL:
		if len(g.GetGpus()) > 0 {
			return refuse("instance group %s of model %s has kind %s but specifies one or more GPUs", g.GetName(), c.GetName(), g.GetKind())
		}
	case configpb.ModelInstanceGroup_KIND_GPU: // see checkGPUs
	default:
		return refuse("instance group %s of model %s has unexpected kind %s", g.GetName(), c.GetName(), g.GetKind())
	}
	if g.GetCount() > maxInstances {
		return refuse("instance group %s of model %s has count %d; this engine makes %d instances at most", g.GetName(), c.GetName(), g.GetCount(), maxInstances)
	}
	if len(g.GetProfile()) > 0 {
		return refuse("instance group %s of model %s and platform %sspecifies profile field which is only supported for TensorRT models", g.GetName(), c.GetName(), c.GetPlatform())
	}
	return nil
}
