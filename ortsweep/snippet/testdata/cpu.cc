// Measured with ONNX Runtime cpu@1.31.1; build: c++ -std=c++17 winner.cc -lonnxruntime
// minilm: 2 threads, parallel.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <unordered_map>
#include <vector>
#include <onnxruntime_cxx_api.h>

int main() {
#ifndef _WIN32
  setenv("ORT_DISABLE_TELEMETRY", "1", 0);  // else ONNX Runtime reports to its maker
#endif
  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "winner");
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(2);
  options.SetGraphOptimizationLevel(GraphOptimizationLevel::ORT_ENABLE_EXTENDED);
  options.SetExecutionMode(ORT_PARALLEL);
  options.SetInterOpNumThreads(4);
  options.DisableCpuMemArena();
  options.DisableMemPattern();
  options.AddConfigEntry("session.dynamic_block_base", "4");
  options.AddConfigEntry("session.intra_op.allow_spinning", "0");
  Ort::Session session(env, ORT_TSTR("out/minilm \"int8\".onnx"), options);

  // Zeros: put your own values here.
  auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::vector<Ort::Value> inputs;
  std::vector<int64_t> data0(32);
  std::vector<int64_t> shape0{1, 32};
  inputs.push_back(Ort::Value::CreateTensor<int64_t>(memory, data0.data(), data0.size(), shape0.data(), shape0.size()));
  std::vector<float> data1(192);
  std::vector<int64_t> shape1{1, 3, 8, 8};
  inputs.push_back(Ort::Value::CreateTensor<float>(memory, data1.data(), data1.size(), shape1.data(), shape1.size()));
  std::array<const char*, 2> input_names{"input_ids", "image"};
  std::array<const char*, 2> output_names{"a", "b"};
  auto outputs = session.Run(Ort::RunOptions{nullptr}, input_names.data(), inputs.data(), inputs.size(), output_names.data(), output_names.size());
  for (auto& output : outputs) {
    std::cout << output.GetTensorTypeAndShapeInfo().GetElementCount() << " elements\n";
  }
}
