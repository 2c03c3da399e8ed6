"use strict";
// What a page does by itself: colours, sorting, filters, figures. Data is in the page; nothing is loaded.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const charts = [];
  const ink = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const colour = (index) => ink(`c${index % 10}`);
  const make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // Colours -----------------------------------------------------------------
  const choice = document.getElementById("theme");
  const paint = (printing = false) => {
    const wanted = printing ? "light" : choice.value || (dark.matches ? "dark" : "light");
    root.classList.toggle("dark", wanted === "dark");
    for (const each of document.querySelectorAll(".swatch")) each.style.background = ink(each.dataset.colour);
    for (const each of charts) each.draw();
  };

  // Tables ------------------------------------------------------------------
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent.trim() : +cell.dataset.value;
  };
  const plain = (text) => (typeof text === "number" ? text : Number(text.replaceAll(",", "").replace("−", "-")));
  const order = (a, b) => {
    const [x, y] = [plain(a), plain(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? String(a).localeCompare(String(b), "en", { numeric: true }) : x - y;
  };
  const sort = (table, column, head) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => order(key(a, column), key(b, column)) * (down ? -1 : 1));
    body.append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable, .rich table")) {
    if (!table.tHead || table.tBodies[0].rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make("button", { type: "button", title: head.title });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, column, head));
    });
  }

  // Filters -----------------------------------------------------------------
  const shown = (article) =>
    new Set([...article.querySelectorAll(".filter input:checked")].map((each) => each.value));
  for (const article of document.querySelectorAll("article")) {
    const filter = article.querySelector(".filter");
    filter?.addEventListener("change", () => {
      const groups = shown(article);
      for (const row of article.querySelectorAll("tr[data-group]")) row.hidden = !groups.has(row.dataset.group);
      for (const each of charts) if (article.contains(each.figure)) each.draw();
    });
  }

  // Figures -----------------------------------------------------------------
  const text = () => ({ color: ink("ink"), fontSize: 13, fontFamily: getComputedStyle(root).fontFamily });
  const axis = (more) => ({
    axisLine: { lineStyle: { color: ink("line") } },
    axisTick: { lineStyle: { color: ink("line") } },
    splitLine: { lineStyle: { color: ink("line") } },
    axisLabel: { ...text(), color: ink("ink") },
    nameTextStyle: { ...text(), color: ink("soft") },
    ...more,
  });
  const tip = (more) => ({
    backgroundColor: ink("paper"),
    borderColor: ink("line"),
    textStyle: text(),
    confine: true,
    // Texts are nodes, not markup: names come from anybody.
    ...more,
  });
  const lines = (...rows) => {
    const box = make("div");
    for (const row of rows) box.append(make("div", { textContent: row }));
    return box;
  };
  const format = (value, digits = 3) =>
    value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
  const press = (tools, label, on, act) => {
    const button = make("button", { type: "button", textContent: label });
    button.setAttribute("aria-pressed", String(on));
    button.addEventListener("click", () => {
      const now = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(now));
      act(now);
    });
    tools.append(button);
  };
  // What the reader chooses of a figure: its metric, and whether the axis begins at 0.
  const choices = (tools, metrics, draw) => {
    const chosen = { metric: metrics[0], zero: false };
    if (metrics.length > 1) {
      const pick = make("select");
      metrics.forEach((each, index) => pick.append(make("option", { value: index, textContent: each.name })));
      pick.addEventListener("change", () => {
        chosen.metric = metrics[+pick.value];
        draw();
      });
      tools.append(make("label", {}, "Metric ", pick));
    }
    press(tools, "axis from zero", false, (on) => {
      chosen.zero = on;
      draw();
    });
    return chosen;
  };
  // The groups that the page's filter shows; null if it has none.
  const filtered = (figure) => {
    const article = figure.closest("article");
    return article.querySelector(".filter") ? shown(article) : null;
  };
  const fit = (canvas, chart, height) => {
    canvas.style.height = `${height}px`;
    chart().resize();
  };
  const narrow = (figure) => figure.clientWidth < 560;

  const forms = {
    // Policies with intervals, for a metric that the reader chooses.
    intervals({ figure, canvas, tools, data, chart }) {
      const draw = () => {
        const { metric, zero } = chosen;
        const groups = filtered(figure);
        const rows = [];
        let last = "";
        for (const row of metric.rows) {
          if (groups && !groups.has(row.policy)) continue;
          if (row.mix !== last) rows.push({ title: (last = row.mix) });
          rows.push(row);
        }
        const values = rows.filter((row) => row.policy !== undefined);
        const height = Math.max(140, 64 + 30 * rows.length);
        fit(canvas, chart, height);
        chart().setOption(
          {
            animation: false,
            textStyle: text(),
            grid: { left: 12, right: 28, top: 8, bottom: 36, containLabel: true },
            tooltip: tip({
              trigger: "item",
              formatter: ({ dataIndex }) => {
                const row = values[dataIndex];
                const spread = row.high > row.low;
                return lines(
                  row.mix ? `${row.policy}: ${row.mix}` : row.policy,
                  `${metric.name} ${format(row.mean, metric.digits)}`,
                  ...(spread ? [`95 % interval ${format(row.low, metric.digits)} to ${format(row.high, metric.digits)}`] : []),
                );
              },
            }),
            xAxis: axis({
              type: "value",
              scale: !zero,
              name: `${metric.name} (${metric.lower ? "lower" : "higher"} is better)`,
              nameLocation: "middle",
              nameGap: 26,
              min: zero ? 0 : undefined,
            }),
            yAxis: axis({
              type: "category",
              inverse: true,
              data: rows.map((row) => row.policy ?? row.title),
              splitLine: { show: false },
              axisTick: { show: false },
              axisLabel: {
                ...text(),
                width: narrow(figure) ? 120 : 240,
                overflow: "break",
                formatter: (name, index) => (rows[index]?.policy === undefined ? `{group|${name}}` : name),
                rich: { group: { ...text(), fontWeight: 700 } },
              },
            }),
            series: [
              {
                type: "custom",
                encode: { x: [1, 2, 3], y: 0 },
                data: values.map((row) => [rows.indexOf(row), row.low, row.mean, row.high]),
                renderItem: ({ dataIndex }, api) => {
                  const y = api.value(0);
                  const [low, at] = api.coord([api.value(1), y]);
                  const [middle] = api.coord([api.value(2), y]);
                  const [high] = api.coord([api.value(3), y]);
                  const fill = colour(data.policies.indexOf(values[dataIndex].policy));
                  const line = (x1, x2, y1, y2) => ({
                    type: "line",
                    shape: { x1, x2, y1, y2 },
                    style: { stroke: fill, lineWidth: 2 },
                  });
                  const bars =
                    high > low
                      ? [line(low, high, at, at), line(low, low, at - 5, at + 5), line(high, high, at - 5, at + 5)]
                      : [];
                  const dot = { type: "circle", shape: { cx: middle, cy: at, r: 6 }, style: { fill } };
                  return { type: "group", children: [...bars, dot] };
                },
              },
            ],
          },
          true,
        );
      };
      const chosen = choices(tools, data.metrics, draw);
      return draw;
    },

    // A curve per policy along a parameter, with intervals, for a metric that the reader chooses.
    curves({ figure, canvas, tools, data, chart }) {
      const chosen = choices(tools, data.metrics, () => draw());
      const all = chosen.metric.lines;
      const values = [...new Set(all.flatMap((line) => line.points.map(([x]) => x)))]
        .filter((x) => x !== null)
        .sort((a, b) => a - b);
      const [first, last] = [values[0], values.at(-1)];
      // Values that grow by a factor are evenly apart on an axis of logarithms.
      const factor = values[1] / first;
      const grows = first > 0 && values.length > 2 && values.every((x, at) => !at || Math.abs(x / values[at - 1] / factor - 1) < 0.01);
      const margin = grows ? Math.pow(last / first, 0.04) : 0.04 * (last - first);
      const at = (line) => data.policies.indexOf(line.groups[0]);
      const draw = () => {
        const { metric, zero } = chosen;
        const groups = filtered(figure);
        const visible = metric.lines.filter((line) => !groups || line.groups.some((each) => groups.has(each)));
        const curved = visible.filter((line) => line.points.length > 1);
        fit(canvas, chart, 340);
        chart().setOption(
          {
            animation: false,
            textStyle: text(),
            grid: { left: 12, right: 24, top: 30, bottom: 40, containLabel: true },
            tooltip: tip({
              trigger: "item",
              formatter: ({ seriesIndex, data: [x, low, mean, high] }) => {
                const line = visible[seriesIndex];
                return lines(
                  line.points[0][0] === null ? line.policy : `${line.policy}, ${data.head} = ${x}`,
                  `${metric.name} ${format(mean, metric.digits)}`,
                  ...(high > low ? [`95 % interval ${format(low, metric.digits)} to ${format(high, metric.digits)}`] : []),
                );
              },
            }),
            xAxis: axis({
              type: grows ? "log" : "value",
              min: grows ? first / margin : first - margin,
              max: grows ? last * margin : last + margin,
              name: data.head,
              nameLocation: "middle",
              nameGap: 26,
              splitLine: { show: false },
              axisLine: { onZero: false, lineStyle: { color: ink("line") } },
              axisTick: { lineStyle: { color: ink("line") }, customValues: values },
              axisLabel: { ...text(), hideOverlap: true, customValues: values, formatter: (x) => String(+x.toPrecision(6)) },
            }),
            yAxis: axis({
              type: "value",
              scale: !zero,
              min: zero ? 0 : undefined,
              name: `${metric.name} (${metric.lower ? "lower" : "higher"} is better)`,
              nameTextStyle: { ...text(), color: ink("soft"), align: "left" },
            }),
            series: visible.map((line) => ({
              type: "custom",
              encode: { x: 0, y: [1, 2, 3] },
              data: line.points.map(([x, ...ends]) => [x ?? first, ...ends]),
              renderItem: ({ dataIndex }, api) => {
                const fill = colour(at(line));
                const stroke = (x1, y1, x2, y2, more) => ({
                  type: "line",
                  shape: { x1, y1, x2, y2 },
                  style: { stroke: fill, lineWidth: 2, ...more },
                });
                const [x, y] = api.coord([api.value(0), api.value(2)]);
                if (line.points[0][0] === null) return stroke(x, y, api.coord([last, 0])[0], y, { lineDash: [6, 4] });
                const [low, high] = [1, 3].map((end) => api.coord([api.value(0), api.value(end)])[1]);
                const beside = x + 4 * (curved.indexOf(line) - (curved.length - 1) / 2);
                const bar = low > high ? [stroke(beside, low, beside, high, { lineWidth: 1.5, opacity: 0.6 })] : [];
                const before = line.points[dataIndex - 1];
                const path = before ? [stroke(...api.coord([before[0], before[2]]), x, y)] : [];
                return { type: "group", children: [...path, ...bar, { type: "circle", shape: { cx: x, cy: y, r: 4 }, style: { fill } }] };
              },
            })),
          },
          true,
        );
      };
      const legend = make("span", { className: "lines" });
      for (const line of all) {
        const swatch = make("span", { className: "swatch" });
        swatch.dataset.colour = `c${at(line) % 10}`;
        legend.append(make("span", {}, swatch, line.policy));
      }
      canvas.after(legend);
      return draw;
    },

    // Spans of time on rows (cores or workers), coloured by name; with links, what a span waited for.
    timeline({ figure, canvas, tools, data, chart }) {
      const hidden = new Set();
      const links = data.links ?? null;
      let chosen = -1;
      const legend = make("fieldset", {}, make("legend", { textContent: data.word ?? "Programs" }));
      const used = new Set(data.spans.map((span) => span[3]));
      data.names.forEach((name, index) => {
        if (!used.has(index)) return;
        const box = make("input", { type: "checkbox", checked: true });
        box.addEventListener("change", () => {
          box.checked ? hidden.delete(index) : hidden.add(index);
          draw();
        });
        const swatch = make("span", { className: "swatch" });
        swatch.dataset.colour = `c${(index + 1) % 10}`;
        legend.append(make("label", {}, box, swatch, name));
      });
      tools.append(legend);
      let [from, to] = [0, 100];
      const zoom = (scale, shift) => {
        const width = Math.min(100, (to - from) * scale);
        const middle = (from + to) / 2 + shift * (to - from);
        from = Math.min(100 - width, Math.max(0, middle - width / 2));
        to = from + width;
        chart().dispatchAction({ type: "dataZoom", start: from, end: to });
      };
      for (const [label, word, scale, shift] of [
        ["+", "Zoom in", 0.5, 0],
        ["−", "Zoom out", 2, 0],
        ["←", "Earlier", 1, -0.5],
        ["→", "Later", 1, 0.5],
        ["all", "Show all", 1e9, 0],
      ]) {
        const button = make("button", { type: "button", textContent: label, title: word });
        button.setAttribute("aria-label", word);
        button.addEventListener("click", () => zoom(scale, shift));
        tools.append(button);
      }
      const title = (span) => {
        const name = data.names[span[3]];
        if (data.labels) return data.labels[span[4]];
        return span[4] < 0 ? name : `${name}/${data.threads[span[4]]}`;
      };
      const draw = () => {
        const height = 92 + data.rows.length * (data.rows.length > 16 ? 20 : 30);
        fit(canvas, chart, height);
        const visible = data.spans.map((span, index) => [...span, index]).filter((span) => !hidden.has(span[3]));
        const arrows = [];
        if (links && chosen >= 0) {
          for (const before of links[chosen]) arrows.push([before, chosen]);
          links.forEach((befores, after) => befores.includes(chosen) && arrows.push([chosen, after]));
        }
        chart().setOption(
          {
            animation: false,
            textStyle: text(),
            grid: { left: 8, right: 20, top: 6, bottom: 62, containLabel: true },
            tooltip: tip({
              trigger: "item",
              formatter: ({ seriesIndex, data: span }) => {
                if (seriesIndex) return "";
                const rest = links
                  ? [
                      links[span[5]].length
                        ? `waits for ${links[span[5]].slice(0, 8).map((each) => data.labels[each]).join(", ")}` +
                          (links[span[5]].length > 8 ? ` and ${links[span[5]].length - 8} more` : "")
                        : "waits for nothing",
                    ]
                  : [];
                return lines(
                  title(span),
                  ...(data.labels && data.names[span[3]] ? [data.names[span[3]]] : []),
                  `${data.rows[span[0]]}: ${format(span[1])} to ${format(span[2])} ${data.unit} (${format(span[2] - span[1])})`,
                  ...rest,
                );
              },
            }),
            dataZoom: [
              { type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, start: from, end: to },
              {
                type: "slider",
                filterMode: "weakFilter",
                height: 18,
                bottom: 8,
                start: from,
                end: to,
                textStyle: text(),
                borderColor: ink("line"),
                showDetail: false,
                brushSelect: false,
              },
            ],
            xAxis: axis({
              type: "value",
              min: 0,
              max: data.end,
              name: data.unit,
              nameLocation: "middle",
              nameGap: 24,
              axisLabel: { ...text(), hideOverlap: true, formatter: (value) => format(value, value % 1 ? 1 : 0) },
            }),
            yAxis: axis({
              type: "category",
              inverse: true,
              data: data.rows,
              splitLine: { show: false },
              axisTick: { show: false },
              axisLabel: { ...text(), width: narrow(figure) ? 80 : 180, overflow: "truncate" },
            }),
            series: [
              {
                type: "custom",
                encode: { x: [1, 2], y: 0 },
                data: visible,
                renderItem: (params, api) => {
                  const [left, at] = api.coord([api.value(1), api.value(0)]);
                  const [right] = api.coord([api.value(2), api.value(0)]);
                  const height = api.size([0, 1])[1] * 0.72;
                  const { coordSys: box } = params;
                  const x = Math.max(left, box.x);
                  const width = Math.min(right, box.x + box.width) - x;
                  if (width < 0) return null;
                  const related = arrows.some((pair) => pair.includes(api.value(5)));
                  return {
                    type: "rect",
                    shape: { x, y: at - height / 2, width: Math.max(0.7, width), height },
                    style: {
                      fill: colour(api.value(3) + 1),
                      opacity: arrows.length && !related && api.value(5) !== chosen ? 0.35 : 1,
                      stroke: width > 6 ? ink("paper") : null,
                      lineWidth: width > 6 ? 0.6 : 0,
                    },
                  };
                },
              },
              {
                type: "custom",
                silent: true,
                encode: { x: [0, 2], y: 1 },
                data: arrows.map(([a, b]) => [data.spans[a][2], data.spans[a][0], data.spans[b][1], data.spans[b][0]]),
                renderItem: (params, api) => {
                  const [x1, y1] = api.coord([api.value(0), api.value(1)]);
                  const [x2, y2] = api.coord([api.value(2), api.value(3)]);
                  return {
                    type: "group",
                    children: [
                      { type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: ink("ink"), lineWidth: 1.6 } },
                      { type: "circle", shape: { cx: x2, cy: y2, r: 3 }, style: { fill: ink("ink") } },
                    ],
                  };
                },
              },
            ],
          },
          true,
        );
      };
      const listen = (made) => {
        made.on("datazoom", (event) => {
          const zoomed = event.batch?.[0] ?? event;
          [from, to] = [zoomed.start ?? from, zoomed.end ?? to];
        });
        if (!links) return;
        made.on("click", { seriesIndex: 0 }, ({ data: span }) => {
          chosen = chosen === span[5] ? -1 : span[5];
          draw();
        });
      };
      return Object.assign(draw, { listen });
    },

    // Counts by category, one bar each, parts stacked.
    stacked({ figure, canvas, data, chart }) {
      return () => {
        fit(canvas, chart, 90 + 30 * data.rows.length);
        chart().setOption(
          {
            animation: false,
            textStyle: text(),
            grid: { left: 8, right: 20, top: 8, bottom: 36, containLabel: true },
            tooltip: tip({
              trigger: "item",
              formatter: ({ seriesName, name, value }) => lines(name, `${seriesName}: ${value}`),
            }),
            xAxis: axis({ type: "value", name: data.unit, nameLocation: "middle", nameGap: 26, minInterval: 1 }),
            yAxis: axis({
              type: "category",
              inverse: true,
              data: data.rows,
              splitLine: { show: false },
              axisTick: { show: false },
              axisLabel: { ...text(), width: narrow(figure) ? 110 : 240, overflow: "break" },
            }),
            series: data.parts.map((part) => ({
              type: "bar",
              name: part.name,
              stack: "all",
              barMaxWidth: 20,
              data: part.values,
              itemStyle: { color: ink(part.colour) },
              label: {
                show: true,
                color: ink("paper"),
                fontSize: 12,
                formatter: ({ value }) => (value > 0 ? String(value) : ""),
              },
            })),
          },
          true,
        );
      };
    },

    // How often a value fell into each class, a step per policy.
    histogram({ figure, canvas, data, chart }) {
      return () => {
        const groups = filtered(figure);
        fit(canvas, chart, 280);
        chart().setOption(
          {
            animation: false,
            textStyle: text(),
            grid: { left: 12, right: 20, top: 20, bottom: 40, containLabel: true },
            tooltip: tip({
              trigger: "axis",
              formatter: (rows) =>
                lines(`up to ${rows[0].axisValue} ${data.unit}`, ...rows.map((row) => `${row.seriesName}: ${format(row.value, 2)} %`)),
            }),
            xAxis: axis({ type: "category", data: data.bounds, name: data.unit, nameLocation: "middle", nameGap: 26 }),
            yAxis: axis({
              type: "value",
              name: "% of wake-ups",
              nameTextStyle: { ...text(), color: ink("soft"), align: "left" },
            }),
            series: data.series
              .filter((each) => !groups || groups.has(each.policy))
              .map((each) => ({
                type: "bar",
                name: each.policy,
                data: each.shares,
                itemStyle: { color: colour(data.policies.indexOf(each.policy)) },
              })),
          },
          true,
        );
      };
    },
  };

  for (const figure of document.querySelectorAll("figure.chart")) {
    const canvas = figure.querySelector(".canvas");
    const data = JSON.parse(figure.querySelector("script").textContent);
    let made = null;
    let listen = null;
    const chart = () => {
      if (!made) {
        made = echarts.init(canvas, null, { renderer: "svg", height: canvas.clientHeight || 200 });
        listen?.(made);
      }
      return made;
    };
    const draw = forms[figure.dataset.form]({ figure, canvas, tools: figure.querySelector(".tools"), data, chart });
    listen = draw.listen;
    charts.push({ figure, draw, get made() { return made; } });
  }
  window.ampsched = { charts };

  choice.addEventListener("change", () => paint());
  dark.addEventListener("change", () => paint());
  addEventListener("beforeprint", () => paint(true));
  addEventListener("afterprint", () => paint());
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach((each) => each.draw()), 100);
  });
  paint();
})();
