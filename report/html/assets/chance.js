// The probability that limits hold, by the rules of package analyze (probability.go).

const quantile975 = 1.959964; // of the standard normal distribution

// normal is the distribution function of the standard normal distribution, by its series around 0 (Marsaglia, 2004).
function normal(z) {
  if (Math.abs(z) > 7) return z > 0 ? 1 : 0;
  let term = z, sum = z;
  for (let n = 3; Math.abs(term) > 1e-17 * Math.abs(sum); n += 2) {
    term *= z * z / n;
    sum += term;
  }
  return 0.5 + sum * Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
}

// below is the probability that a metric's true value at a point is at most a limit.
function below(point, metric, limit) {
  const v = point.value(metric), [lo, hi] = point.interval(metric) || [v, v];
  const half = limit < v ? Math.log(v / lo) : Math.log(hi / v);
  if (!(v > 0 && half > 0)) return v <= limit ? 1 : 0;
  return half === Infinity ? 0.5 : normal(Math.log(limit / v) / half * quantile975);
}

// probability is that of all limits to hold at a point, their errors taken as independent. What is not known does not hold.
function probability(point, constraints) {
  return constraints.reduce((product, c) => {
    if (point.value(c.metric) === null) return 0;
    const most = c.max === undefined ? 1 : below(point, c.metric, c.max), least = c.min === undefined ? 0 : below(point, c.metric, c.min);
    return product * Math.max(0, most - least);
  }, 1);
}

// chanceText prints a probability without pretending to be certain.
function chanceText(p) {
  if (p > 0.99) return ">99 %";
  return p < 0.01 ? "<1 %" : `${(100 * p).toFixed(0)} %`;
}
