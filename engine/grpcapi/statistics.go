package grpcapi

import (
	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

func statistics(s *api.ModelStatistics) *pb.ModelStatistics {
	i := &s.InferenceStats
	out := &pb.ModelStatistics{
		Name: s.Name, Version: s.Version, LastInference: s.LastInference,
		InferenceCount: s.InferenceCount, ExecutionCount: s.ExecutionCount,
		InferenceStats: &pb.InferStatistics{
			Success: duration(i.Success), Fail: duration(i.Fail), Queue: duration(i.Queue),
			ComputeInput: duration(i.ComputeInput), ComputeInfer: duration(i.ComputeInfer), ComputeOutput: duration(i.ComputeOutput),
			CacheHit: duration(i.CacheHit), CacheMiss: duration(i.CacheMiss),
		},
	}
	for _, b := range s.BatchStats {
		out.BatchStats = append(out.BatchStats, &pb.InferBatchStatistics{BatchSize: b.BatchSize,
			ComputeInput: duration(b.ComputeInput), ComputeInfer: duration(b.ComputeInfer), ComputeOutput: duration(b.ComputeOutput)})
	}
	for _, m := range s.MemoryUsage {
		out.MemoryUsage = append(out.MemoryUsage, &pb.MemoryUsage{Type: m.Type, Id: m.ID, ByteSize: m.ByteSize})
	}
	return out
}

func duration(d api.Duration) *pb.StatisticDuration {
	return &pb.StatisticDuration{Count: d.Count, Ns: d.NS}
}
