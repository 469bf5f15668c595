// Prints figures like the program's other reports (measure.Metric.Format).

const unknown = "–";

// significantDecimals returns the number of decimals with which a number has three significant digits.
function significantDecimals(v) { return v === 0 ? 0 : Math.min(20, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(v))))); }

// significant prints a number with three significant digits, and with all digits before the point.
function significant(v) { return v.toFixed(significantDecimals(v)); }

// throughputDecimals is measure.ThroughputDecimals.
function throughputDecimals(v, usual) { return v > 0 && v < 10 ? significantDecimals(v) : usual; }

function formatSeconds(s) {
  const ms = s * 1e3;
  if (ms < 0.1) return `${Number((ms * 1e3).toPrecision(3))} µs`;
  if (ms < 1) return `${(ms * 1e3).toFixed(0)} µs`;
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  if (ms < 100) return `${ms.toFixed(1)} ms`;
  return `${ms.toFixed(0)} ms`;
}

function formatJoules(joules) {
  if (joules >= 1 || joules === 0) return `${significant(joules)} J`;
  if (joules >= 1e-3) return `${significant(joules * 1e3)} mJ`;
  return `${significant(joules * 1e6)} µJ`;
}

// format prints a metric's value with its unit.
function format(metric, v) {
  if (v === null) return unknown;
  switch (metric.unit) {
    case "infer/s": return `${v.toFixed(throughputDecimals(v, 1))} infer/s`;
    case "s": return formatSeconds(v);
    case "share": return `${(v * 100).toFixed(1)} %`;
    case "B": return `${(v / 1e6).toFixed(0)} MB`;
    case "W": return `${v.toFixed(1)} W`;
    case "J": return formatJoules(v);
    case "currency per million inferences": return `${significant(v)} per million`;
  }
  return `${v.toFixed(2)} ${metric.unit}`;
}

// scaleOf returns the unit in which axes and fields show a metric, and the factor from the base
// unit to it.
function scaleOf(metric) {
  switch (metric.unit) {
    case "s": return { factor: 1e3, unit: "ms" };
    case "B": return { factor: 1e-6, unit: "MB" };
    case "share": return { factor: 100, unit: "%" };
    case "currency per million inferences": return { factor: 1, unit: "per million" };
  }
  return { factor: 1, unit: metric.unit };
}

// short prints a number with at most six significant digits and no trailing zeros: "50", "7.5".
function short(v) { return String(Number(v.toPrecision(6))); }

// limitText prints a limit as users write it.
function limitText(metric, v) {
  if (metric.unit === "s" && v < 1e-3) return `${short(v * 1e6)} µs`;
  const { factor, unit } = scaleOf(metric);
  return `${short(v * factor)} ${unit}`;
}

// percent prints a share with its sign: "+59 %". Below 10 % it has one decimal.
function percent(share) {
  const v = 100 * share, text = Math.abs(v) < 10 ? v.toFixed(1) : v.toFixed(0);
  return `${v > 0 ? "+" : ""}${Number(text) === 0 ? "0" : text.replace("-", "−")} %`;
}

// count prints a number with its noun.
function count(n, noun) { return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`; }
