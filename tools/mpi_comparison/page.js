// A section per network and number of ranks, a chart per operation: a line per transport over the size of messages.
'use strict';

(() => {
  const {results, labels} = JSON.parse(document.getElementById('comparison-data').textContent);
  const names = Object.keys(labels);
  const main = document.getElementById('main');
  const columns = [{name: 'Median', key: 'p50_us'}, {name: 'p99', key: 'p99_us'}];
  document.documentElement.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';

  const bytes = (size) =>
      (size >= 1e6 ? `${Format.tick(size / 1e6)} MB` :
           size >= 1e3 ? `${Format.tick(size / 1e3)} KB` :
                         `${Format.tick(size)} B`);
  const unit = (op) => (op === 'bandwidth' ? 'MB/s' : '\u00b5s');
  const value = (row, key) => (row.op === 'bandwidth' ? row.size / row[key].median : row[key].median);

  function draw(host, op, rows, key) {
    host.replaceChildren();
    const format = (number) => `${Format.number(number)} ${unit(op)}`;
    const lines = names.map((name, colour) => {
      const own = rows.filter((row) => row.transport === name).sort((a, b) => a.size - b.size);
      return {
        name: labels[name],
        colour,
        dash: 0,
        x: own.map((row) => row.size),
        y: own.map((row) => value(row, key))
      };
    });
    new LineChart(host, {
      x: {label: 'size', log: true, tick: bytes, format: bytes},
      y: {log: true, format},
      lines: lines.filter((line) => line.x.length > 0),
      align: 'line',
      points: true,
      hidden: new Set(),
      onToggle: () => {},
    });
  }

  function card(op, rows) {
    const host = element('div', {class: 'plot'});
    const better = op === 'bandwidth' ? 'higher' : 'lower';
    const buttons =
        columns.map(({name}, i) => element('button', {type: 'button', 'aria-pressed': String(i === 0)}, name));
    buttons.forEach((button, i) => button.addEventListener('click', () => {
      buttons.forEach((other) => other.setAttribute('aria-pressed', String(other === button)));
      draw(host, op, rows, columns[i].key);
    }));
    const figure = element('figure', {class: 'card'}, [
      element('div', {class: 'top'}, [
        element('h4', {}, op),
        element('div', {class: 'switch', role: 'group'}, buttons),
      ]),
      element('p', {class: 'axis'}, `${unit(op)}, both axes logarithmic; ${better} is better`),
      host,
    ]);
    return {figure, draw: () => draw(host, op, rows, columns[0].key)};
  }

  const places = new Map();
  for (const row of results) {
    const place = `${row.network}, ${row.ranks} ranks`;
    places.set(place, [...(places.get(place) ?? []), row]);
  }
  for (const [place, rows] of places) {
    const charts = element('div', {class: 'charts'});
    main.append(element('section', {class: 'study'}, [element('h2', {}, place), charts]));
    for (const op of new Set(rows.map((row) => row.op))) {
      const made = card(op, rows.filter((row) => row.op === op));
      charts.append(made.figure);
      made.draw();  // in the document, where it has a width
    }
  }
})();
