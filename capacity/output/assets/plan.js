"use strict";
// The page looks answers up. It computes nothing but the cost of a day: replica hours by the price.

document.documentElement.classList.add("js");

(() => {
	const data = JSON.parse(document.getElementById("data").textContent);
	const section = document.getElementById("what-if");
	if (!data.answers || data.answers.length === 0) {
		section.remove();
		return;
	}
	const form = section.querySelector("form");
	const names = { rate: data.rates, limit: data.limits, startup: data.startups };
	const at = (name) => Number(form.elements[name].value);

	function prices() {
		return [...form.querySelectorAll("input.price")].map((input) => Number(input.value) || 0);
	}

	function number(x, digits) {
		return x >= 1000 ? x.toFixed(0) : String(Number(x.toPrecision(digits)));
	}

	function row(kind, answer, cost, isChosen) {
		const replicas = answer.Min === answer.Max ? String(answer.Min) : `${answer.Min}–${answer.Max}`;
		const tr = document.createElement("tr");
		tr.classList.toggle("chosen", isChosen);
		const cells = [data.types[kind], answer.Satisfied ? answer.Configuration : `${answer.Configuration} (misses the limit)`, replicas,
			answer.Target > 0 ? number(answer.Target, 4) : "", number(answer.Hours, 4), cost > 0 ? number(cost, 4) : "",
			`${(100 * answer.Within).toFixed(2)} %`, number(1000 * answer.P99, 3)];
		cells.forEach((text, i) => {
			const td = document.createElement("td");
			td.textContent = text;
			if (i > 1) {
				td.className = "number";
			}
			tr.append(td);
		});
		return tr;
	}

	function show() {
		for (const [name, texts] of Object.entries(names)) {
			form.querySelector(`output[for=${name}]`).textContent = texts[at(name)];
		}
		const index = (at("rate") * data.limits.length + at("limit")) * data.startups.length + at("startup");
		const price = prices();
		const isPriced = price.every((p) => p > 0);
		const value = (kind) => data.answers[kind][index].Hours * (isPriced ? price[kind] : 1);
		let best = -1;
		data.answers.forEach((list, kind) => {
			if (list[index].Satisfied && (best < 0 || value(kind) < value(best))) {
				best = kind;
			}
		});
		document.getElementById("types").replaceChildren(...data.answers.map((list, kind) =>
			row(kind, list[index], isPriced ? value(kind) : 0, kind === best)));
		const found = document.getElementById("found");
		if (best < 0) {
			found.textContent = "No fleet within the bounds keeps the limit.";
			return;
		}
		const answer = data.answers[best][index];
		const replicas = answer.Min === answer.Max ? `${answer.Min}` : `${answer.Min} to ${answer.Max}`;
		const cost = isPriced ? `cost ${number(value(best), 4)} a day` : `${number(answer.Hours, 4)} replica hours a day`;
		found.textContent = `${replicas} × ${answer.Configuration} on ${data.types[best]}: ${cost}.`;
	}

	form.addEventListener("input", show);
	form.addEventListener("submit", (event) => event.preventDefault());
	show();
})();
