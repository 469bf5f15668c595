// Prints constraints, loads and settings like the report's other formats.

// constraintText prints a constraint: "p99 ≤ 50 ms".
function constraintText(c) {
  const metric = metricOf(c.metric), parts = [];
  if (c.min !== undefined) parts.push(`${metric.label} ≥ ${limitText(metric, c.min)}`);
  if (c.max !== undefined) parts.push(`${metric.label} ≤ ${limitText(metric, c.max)}`);
  return parts.join(" and ");
}

// loadText prints a load: "concurrency 8", "200 requests/s × batch 4", "scale 1.5".
function loadText(load) {
  if (load.scale) return `scale ${short(load.scale)}`;
  const text = load.concurrency ? `concurrency ${load.concurrency}` : `${short(load.request_rate)} requests/s`;
  return load.batch_size > 1 ? `${text} × batch ${load.batch_size}` : text;
}

// valueText prints a knob's value.
function valueText(knob, v) {
  if (v === null) return "default’s";
  const own = knob.slice(knob.lastIndexOf(".") + 1); // without the name of one of several models
  if (own === "intra_op_threads" && v === "0") return "all cores";
  if (own === "max_queue_delay") return v.replace(/us$/, " µs");
  return v === "[]" ? "none" : v;
}
