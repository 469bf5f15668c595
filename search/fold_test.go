package search_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/search"
	"tuner/search/searchtest"
)

func knob(name string, values ...search.Value) search.Knob {
	scope, _ := search.KnobScope(name)
	return search.Knob{Name: name, Scope: scope, Values: values}
}

func keys(candidates []search.Candidate) []string {
	var list []string
	for _, c := range candidates {
		list = append(list, c.Key())
	}
	return list
}

func TestFoldingRules(t *testing.T) {
	t.Parallel()
	facts := search.Facts{Cores: 2, Batching: true, Precisions: []string{"fp32"}}
	fixed, triton := facts, facts
	fixed.Batching = false
	triton.TritonOnly = true
	check := func(name string, f search.Facts, clientBatch int, knobs []search.Knob, want []string, folds ...search.Fold) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := search.Space{Knobs: knobs, Facts: f, Load: search.LoadAxis{Levels: []float64{1}, BatchSize: clientBatch}}
			candidates := space.Candidates()
			if diff := cmp.Diff(want, keys(candidates.All())); diff != "" {
				t.Error("candidates (-want +got):\n" + diff)
			}
			if diff := cmp.Diff(folds, candidates.Folds()); diff != "" {
				t.Error("folds (-want +got):\n" + diff)
			}
		})
	}
	type knobs = []search.Knob
	check("no knobs", facts, 1, nil, nil)
	check("batch of one", facts, 1,
		knobs{knob("max_batch_size", "1", "2"), knob("max_queue_delay", "100us", "1000us"), knob("preferred_batch_size", "[]", "[2]")},
		[]string{
			"max_batch_size=1 max_queue_delay=0us preferred_batch_size=[]",
			"max_batch_size=2 max_queue_delay=100us preferred_batch_size=[]",
			"max_batch_size=2 max_queue_delay=100us preferred_batch_size=[2]",
			"max_batch_size=2 max_queue_delay=1000us preferred_batch_size=[]",
			"max_batch_size=2 max_queue_delay=1000us preferred_batch_size=[2]",
		},
		search.Fold{
			Reason: "a batch of one never waits, so queue delay and preferred sizes have no effect with max_batch_size ≤ 1",
			Count:  3, Into: "max_batch_size=1 max_queue_delay=0us preferred_batch_size=[]",
		})
	check("no batch dimension", fixed, 1, knobs{knob("max_batch_size", "1", "2", "4")}, []string{"max_batch_size=0"},
		search.Fold{Reason: "the model has no batch dimension, or its configuration counts it among the dims, so max_batch_size is 0", Count: 2, Into: "max_batch_size=0"})
	check("no batch dimension and no knob for it", fixed, 1,
		knobs{knob("max_queue_delay", "0us", "100us"), knob("preferred_batch_size", "[2]")},
		[]string{"max_queue_delay=0us preferred_batch_size=[]"},
		search.Fold{
			Reason: "a batch of one never waits, so queue delay and preferred sizes have no effect with max_batch_size ≤ 1",
			Count:  1, Into: "max_queue_delay=0us preferred_batch_size=[]",
		})
	check("0 for a model with a batch dimension", facts, 1, knobs{knob("max_batch_size", "0")}, nil,
		search.Fold{Reason: "max_batch_size 0 is for models without a batch dimension", Count: 1})
	check("preferred sizes beyond the default configuration's batch of 4", facts, 1,
		knobs{knob("preferred_batch_size", "[4]", "[4,8]")},
		[]string{"preferred_batch_size=[4]"},
		search.Fold{Reason: "a preferred_batch_size is larger than max_batch_size", Count: 1})
	check("preferred sizes", facts, 1,
		knobs{knob("max_batch_size", "2", "4"), knob("preferred_batch_size", "[2,4]")},
		[]string{"max_batch_size=4 preferred_batch_size=[2,4]"},
		search.Fold{Reason: "a preferred_batch_size is larger than max_batch_size", Count: 1})
	check("sequential", facts, 1,
		knobs{knob("execution_mode", "sequential", "parallel"), knob("inter_op_threads", "1", "2")},
		[]string{
			"execution_mode=sequential inter_op_threads=1",
			"execution_mode=parallel inter_op_threads=1",
			"execution_mode=parallel inter_op_threads=2",
		},
		search.Fold{
			Reason: "inter_op_threads has no effect with execution_mode sequential", Count: 1,
			Into: "execution_mode=sequential inter_op_threads=1",
		})
	without := facts
	without.Unavailable = map[string]string{"cuda": "no NVIDIA driver"}
	check("provider", without, 1, knobs{knob("execution_provider", "cpu", "cuda")}, []string{"execution_provider=cpu"},
		search.Fold{Reason: "execution_provider cuda is not available here: no NVIDIA driver", Count: 1})
	check("precision", facts, 1, knobs{knob("precision", "fp32", "int8")}, []string{"precision=fp32"},
		search.Fold{Reason: "there is no model file with precision int8", Count: 1})
	check("client batch", facts, 4, knobs{knob("max_batch_size", "2", "4")}, []string{"max_batch_size=4"},
		search.Fold{Reason: "max_batch_size is smaller than the client batch of 4", Count: 1})
	// 2 cores: 3 threads are too many for one instance. 1 × 5, 2 × 3 and 0 × 3 are too many for all
	// instances; 0 means all cores.
	check("threads", facts, 1,
		knobs{knob("intra_op_threads", "0", "1", "2", "3"), knob("instance_count", "2", "3", "5")},
		[]string{
			"intra_op_threads=0 instance_count=2", "intra_op_threads=1 instance_count=2",
			"intra_op_threads=1 instance_count=3", "intra_op_threads=2 instance_count=2",
		},
		search.Fold{Reason: "oversubscribed: intra_op_threads × instance_count is more than twice the 2 cores", Count: 5},
		search.Fold{Reason: "intra_op_threads is more than the 2 cores", Count: 3})
	check("Triton", triton, 1,
		knobs{knob("allow_spinning", "false", "true"), knob("execution_provider", "cpu", "dnnl"), knob("runtime", "cpu@1", "cpu@2")},
		[]string{"execution_provider=cpu runtime=cpu@1"},
		search.Fold{
			Reason: "a stock Triton does not honour allow_spinning (deploy_target: tuner does)", Count: 3,
			Into: "execution_provider=cpu runtime=cpu@1",
		},
		search.Fold{Reason: "a stock Triton has no execution_provider dnnl (deploy_target: tuner does)", Count: 4})
	check("OpenVINO's threads", triton, 1,
		knobs{knob("execution_provider", "openvino", "cpu"), knob("intra_op_threads", "1", "2")},
		[]string{
			"execution_provider=openvino intra_op_threads=0",
			"execution_provider=cpu intra_op_threads=1", "execution_provider=cpu intra_op_threads=2",
		},
		search.Fold{
			Reason: "in a stock Triton OpenVINO chooses its own threads, so intra_op_threads has no effect on it", Count: 1,
			Into: "execution_provider=openvino intra_op_threads=0",
		})
	// One session has nothing to share, whether the knob or the default says that there is one instance.
	check("sharing", facts, 1,
		knobs{knob("share_session", "false", "true"), knob("instance_count", "1", "2")},
		[]string{
			"share_session=false instance_count=1", "share_session=false instance_count=2", "share_session=true instance_count=2",
		},
		search.Fold{
			Reason: "share_session has no effect on one instance, or on a GPU, where each instance has a session", Count: 1,
			Into: "share_session=false instance_count=1",
		})
	single := facts
	single.Base = map[string]search.Value{"instance_count": "1"}
	check("sharing with one instance by default", single, 1, knobs{knob("share_session", "true")}, []string{"share_session=false"},
		search.Fold{
			Reason: "share_session has no effect on one instance, or on a GPU, where each instance has a session",
			Into:   "share_session=false",
		})
	check("sharing on a GPU", facts, 1,
		knobs{knob("execution_provider", "cpu", "cuda"), knob("share_session", "true"), knob("instance_count", "2")},
		[]string{"execution_provider=cpu share_session=true instance_count=2", "execution_provider=cuda share_session=false instance_count=2"},
		search.Fold{
			Reason: "share_session has no effect on one instance, or on a GPU, where each instance has a session",
			Into:   "execution_provider=cuda share_session=false instance_count=2",
		})
	check("nothing left but the default", triton, 1, knobs{knob("session.x", "1", "2")}, nil,
		search.Fold{Reason: "a stock Triton does not honour session.x (deploy_target: tuner does)", Count: 2, Into: "default"})
	check("twice", facts, 1, knobs{knob("instance_count", "1", "1")}, []string{"instance_count=1"},
		search.Fold{Reason: "the same value is listed twice", Count: 1, Into: "instance_count=1"})
}

// bigSpace has 2·6·6·2·3·6·5·12 = 155,520 combinations, with its knobs in arbitrary order.
func bigSpace() search.Space {
	numbers := func(n int) []search.Value {
		var values []search.Value
		for i := range n {
			values = append(values, search.IntValue(i+1))
		}
		return values
	}
	return search.Space{
		Knobs: []search.Knob{
			knob("max_batch_size", numbers(12)...), knob("instance_count", numbers(6)...),
			knob("max_queue_delay", "0us", "1us", "2us", "3us", "4us"), knob("precision", "fp32", "int8"),
			knob("intra_op_threads", numbers(6)...), knob("execution_mode", "sequential", "parallel"),
			knob("inter_op_threads", numbers(3)...), knob("graph_optimization", "a", "b", "c", "d", "e", "f"),
		},
		Load:  search.LoadAxis{Levels: []float64{1}, BatchSize: 1},
		Facts: search.Facts{Cores: 4, Batching: true, Precisions: []string{"fp32", "int8"}},
	}
}

func TestCandidatesOfABigSpace(t *testing.T) {
	t.Parallel()
	space := bigSpace()
	candidates := space.Candidates().All()
	sum, unique, pools := len(candidates), map[string]bool{}, map[string]bool{}
	for _, f := range space.Candidates().Folds() {
		sum += f.Count
	}
	if want := space.Combinations(1e9); sum != want || want != 155_520 {
		t.Errorf("candidates and folds count %d of %d combinations", sum, want)
	}
	last := ""
	for i, c := range candidates {
		key := c.Key()
		if unique[key] {
			t.Fatalf("%v is there twice", c)
		}
		unique[key] = true
		if pool := c.PoolKey(); pool != last {
			if pools[pool] {
				t.Fatalf("candidates of %v are not neighbours", pool)
			}
			pools[pool], last = true, pool
		}
		if i%100 != 0 {
			continue
		}
		if canonical, illegal := space.Canonical(c); illegal != "" || canonical.Key() != key {
			t.Fatalf("%v is not canonical: %v, %s", c, canonical, illegal)
		}
	}
	if !strings.HasPrefix(candidates[0].Key(), "max_batch_size=1 instance_count=1 ") {
		t.Errorf("%v does not keep the space's knob order", candidates[0])
	}
}

func TestCombinationsStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	if got := bigSpace().Combinations(1000); got != 1000 {
		t.Errorf("%d combinations, want the limit of 1000", got)
	}
	if got := (search.Space{}).Combinations(1000); got != 1 {
		t.Errorf("a space without knobs has %d combinations, want 1: the default", got)
	}
}

func TestLoadAxis(t *testing.T) {
	t.Parallel()
	listed := search.LoadAxis{Levels: []float64{2, 8, 32}}
	whole := search.LoadAxis{Levels: []float64{2, 8, 32}, Any: true}
	for _, c := range []struct {
		axis                    search.LoadAxis
		target, atLeast, atMost float64
	}{
		{listed, 1, 2, 2}, {listed, 8, 8, 8}, {listed, 9, 32, 8}, {listed, 99, 32, 32},
		{whole, 1, 2, 2}, {whole, 8.5, 9, 8}, {whole, 9, 9, 9}, {whole, 99, 32, 32},
	} {
		got := fmt.Sprint(c.axis.AtLeast(c.target), c.axis.AtMost(c.target))
		if want := fmt.Sprint(c.atLeast, c.atMost); got != want {
			t.Errorf("any %t, target %v: at least and at most are %s, want %s", c.axis.Any, c.target, got, want)
		}
	}
}

func TestKnee(t *testing.T) {
	t.Parallel()
	space := searchtest.Settings(searchtest.Small(), 0).Space
	space.Facts.BaseInstances, space.Facts.BaseMaxBatchSize = 3, 0 // 0 means Triton's 4
	space.Facts.Base[search.KnobInstanceCount] = "3"
	check := func(c search.Candidate, clientBatch int, want float64) {
		space.Load.BatchSize = clientBatch
		if got := space.Knee(c); got != want {
			t.Errorf("knee of %v with client batch %d is %v, want %v", c, clientBatch, got, want)
		}
	}
	check(search.Candidate{}, 1, 24)
	check(search.Candidate{}, 4, 6)
	check(search.NewCandidate(search.Setting{Knob: "max_batch_size", Value: "8"}), 1, 48)
	check(search.NewCandidate(search.Setting{Knob: "max_batch_size", Value: "0"}, search.Setting{Knob: "instance_count", Value: "2"}), 1, 4)
	space.Facts.Batching = false
	check(search.Candidate{}, 1, 6)
}
