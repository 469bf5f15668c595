package autoscaling

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"

	"tuner/capacity/autoscaler"
)

const namespace, name = "serving", "model"

// cluster has all that the controller sees: a scale, pods and their metrics.
type cluster struct {
	mutex   sync.Mutex
	wanted  int32
	pods    int32
	reading autoscaler.Reading
	looks   int // at the metric
}

// Scales, Get, Update and Patch implement the client of scales.
func (c *cluster) Scales(string) scale.ScaleInterface { return c }

func (c *cluster) Get(context.Context, schema.GroupResource, string, metav1.GetOptions) (*autoscalingv1.Scale, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: c.wanted},
		Status: autoscalingv1.ScaleStatus{Replicas: c.pods, Selector: "app=model"},
	}, nil
}

func (c *cluster) Update(_ context.Context, _ schema.GroupResource, s *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.wanted = s.Spec.Replicas
	return s, nil
}

func (c *cluster) Patch(context.Context, schema.GroupVersionResource, string, types.PatchType, []byte, metav1.PatchOptions) (*autoscalingv1.Scale, error) {
	return nil, errors.New("a scale is not patched")
}

// values returns the metric of the measured pods. The first one has what does not divide.
func (c *cluster) values() metrics.PodMetricsInfo {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.looks++
	info := metrics.PodMetricsInfo{}
	r := c.reading
	for i := range r.Measured {
		value := r.Sum / int64(r.Measured)
		if i == 0 {
			value += r.Sum % int64(r.Measured)
		}
		info[podName(i)] = metrics.PodMetric{Timestamp: time.Now(), Window: time.Second, Value: value}
	}
	return info
}

// GetResourceMetric and the three below implement the client of metrics.
func (c *cluster) GetResourceMetric(context.Context, corev1.ResourceName, string, labels.Selector, string) (metrics.PodMetricsInfo, time.Time, error) {
	return c.values(), time.Now(), nil
}

func (c *cluster) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	return c.values(), time.Now(), nil
}

func (c *cluster) GetObjectMetric(string, string, *autoscalingv2.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	return 0, time.Time{}, errors.New("there is no metric of objects")
}

func (c *cluster) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.looks++
	return []int64{c.reading.Sum}, time.Now(), nil
}

func podName(i int) string { return fmt.Sprintf("model-%d", i) }

// podsOf returns the pods of a reading: measured, missing, and unready ones.
func podsOf(r autoscaler.Reading) (list []any) {
	old := metav1.NewTime(time.Now().Add(-time.Hour))
	for i := range r.Measured + r.Missing + r.Unready {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: podName(i), Namespace: namespace, Labels: map[string]string{"app": "model"}}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &old, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: old},
		}}
		if i >= r.Measured+r.Missing {
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
		}
		pod.Spec.Containers = []corev1.Container{{Name: "triton", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(r.Request, resource.DecimalSI)},
		}}}
		list = append(list, pod)
	}
	return list
}

// object returns the settings in Kubernetes' form.
func object(s autoscaler.Settings) *autoscalingv2.HorizontalPodAutoscaler {
	least := int32(s.Min)
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	h.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
		MinReplicas:    &least, MaxReplicas: int32(s.Max), Metrics: []autoscalingv2.MetricSpec{metricOf(s)},
	}
	if b := s.Behavior; b != nil {
		h.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rulesOf(b.Up), ScaleDown: rulesOf(b.Down)}
	}
	return h
}

func metricOf(s autoscaler.Settings) autoscalingv2.MetricSpec {
	quantity, percent := resource.NewMilliQuantity(s.Target, resource.DecimalSI), int32(s.Target)
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity}
	id := autoscalingv2.MetricIdentifier{Name: "rate"}
	switch s.Source {
	case autoscaler.Pods:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: id, Target: target}}
	case autoscaler.External:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: id, Target: target}}
	}
	use := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: use}}
}

func rulesOf(r autoscaler.Rules) *autoscalingv2.HPAScalingRules {
	seconds, choice := int32(r.Stabilization.Seconds()), autoscalingv2.ScalingPolicySelect(r.Select)
	x := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &seconds, SelectPolicy: &choice}
	x.Tolerance = resource.NewMilliQuantity(int64(math.Round(r.Tolerance*1000)), resource.DecimalSI)
	for _, p := range r.Policies {
		kind := autoscalingv2.PodsScalingPolicy
		if p.Percent {
			kind = autoscalingv2.PercentScalingPolicy
		}
		x.Policies = append(x.Policies, autoscalingv2.HPAScalingPolicy{Type: kind, Value: int32(p.Value), PeriodSeconds: int32(p.Period.Seconds())})
	}
	return x
}

// drawn returns random settings.
func drawn(r *rand.Rand) autoscaler.Settings {
	rules := func() autoscaler.Rules {
		x := autoscaler.Rules{
			Stabilization: time.Duration(r.IntN(8)) * autoscaler.SyncPeriod, Tolerance: float64(r.IntN(4)) / 20,
			Select: []autoscaler.Select{autoscaler.Most, autoscaler.Most, autoscaler.Least, autoscaler.Disabled}[r.IntN(4)],
		}
		x.Policies = []autoscaler.Policy{{Value: 1 + r.IntN(5), Period: time.Duration(1+r.IntN(6)) * autoscaler.SyncPeriod}}
		if r.IntN(2) == 0 {
			x.Policies = append(x.Policies, autoscaler.Policy{Percent: true, Value: 1 + r.IntN(120), Period: time.Duration(1+r.IntN(6)) * autoscaler.SyncPeriod})
		}
		return x
	}
	s := autoscaler.Settings{Min: 1 + r.IntN(3), Target: 50, Source: []autoscaler.Source{autoscaler.Pods, autoscaler.External, autoscaler.Resource}[r.IntN(3)]}
	s.Max = s.Min + 1 + r.IntN(25)
	switch r.IntN(3) {
	case 0:
		s.Behavior = &autoscaler.Behavior{Up: rules(), Down: rules()}
	case 1:
		b := autoscaler.DefaultBehavior()
		s.Behavior = &b
	}
	return s
}

// Both want the same number of replicas at each sync, whatever the settings, readings and pods.
func TestEachDecisionIsKubernetes(t *testing.T) {
	const objects, syncs = 200, 60
	for seed := range uint64(objects) {
		synctest.Test(t, func(t *testing.T) { compare(t, rand.New(rand.NewPCG(seed, 1)), syncs) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func compare(t *testing.T, r *rand.Rand, syncs int) {
	ctx, stop := context.WithCancel(t.Context())
	defer func() { stop(); synctest.Wait() }()
	s := drawn(r)
	c := &cluster{wanted: int32(s.Min)}
	client := fake.NewClientset(object(s))
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	controller := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), c, client.AutoscalingV2(),
		testrestmapper.TestOnlyStaticRESTMapper(legacyscheme.Scheme), c, factory.Autoscaling().V2().HorizontalPodAutoscalers(), pods,
		autoscaler.SyncPeriod, autoscaler.DefaultScaleDown, autoscaler.DefaultTolerance, 5*time.Minute, 30*time.Second)
	factory.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced)
	go controller.Run(ctx, 1)
	synctest.Wait()
	time.Sleep(autoscaler.SyncPeriod / 2) // between two syncs
	ours, current, load := autoscaler.New(s), s.Min, 50.0*float64(s.Min)
	for i := range syncs {
		load = max(0, load*(0.7+0.65*r.Float64())+float64(r.IntN(20)))
		reading := autoscaler.Reading{Measured: current, Request: 100}
		for n := r.IntN(current + 1); r.IntN(3) == 0 && reading.Measured > 1 && n > 0; n-- {
			reading.Measured--
			if r.IntN(2) == 0 {
				reading.Unready++
			} else {
				reading.Missing++
			}
		}
		reading.Sum = int64(load)
		c.mutex.Lock()
		c.reading, c.pods = reading, int32(current)
		before := c.looks
		c.mutex.Unlock()
		if err := pods.Informer().GetIndexer().Replace(podsOf(reading), ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(autoscaler.SyncPeriod)
		synctest.Wait()
		c.mutex.Lock()
		want, looks := int(c.wanted), c.looks-before
		c.mutex.Unlock()
		if looks != 1 {
			t.Fatalf("sync %d: Kubernetes looked %d times", i, looks)
		}
		if got := ours.Sync(time.Duration(i)*autoscaler.SyncPeriod, current, reading); got != want {
			t.Fatalf("%+v with %+v, sync %d from %d with %+v: %d replicas, Kubernetes has %d", s, s.Behavior, i, current, reading, got, want)
		}
		current = want
	}
}
