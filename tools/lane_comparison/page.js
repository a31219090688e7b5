// The bars as a table, then a chart per row: a horizontal bar per contender, its rounds' spread, and what is asked.
'use strict';

(() => {
  const {results} = JSON.parse(document.getElementById('comparison-data').textContent);
  const main = document.getElementById('main');
  const colours = {limit: 6, paceline: 0, peer: 1};
  document.documentElement.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';

  function verdictTable() {
    const head = ['Row', 'Of what', 'Bar', 'Here', '', 'Least', 'Most'];
    const rows = results.flatMap((result) => result.bars.map((bar) => {
      const [median, least, most] =
        ['median', 'min', 'max'].map((key) => (bar.value ? Format.number(bar.value[key]) : '\u2013'));
      return element('tr', {}, [
        element('th', {scope: 'row', class: 'words'}, result.title),
        element('td', {class: 'words'}, bar.text),
        element('td', {class: 'number'}, bar.bound),
        element('td', {class: 'number'}, median),
        element('td', {class: bar.verdict === 'missed' ? 'bad' : null}, bar.verdict),
        element('td', {class: 'number'}, least),
        element('td', {class: 'number'}, most),
      ]);
    }));
    return element('div', {class: 'scroll'}, [element('table', {class: 'comparison'}, [
                     element('thead', {}, [element('tr', {}, head.map((name) => element('th', {scope: 'col'}, name)))]),
                     element('tbody', {}, rows),
                   ])]);
  }

  // What the first bar asks for, on the axis of the values.
  function limitOf(result) {
    const bar = result.bars[0];
    if (!bar) return null;
    if (!bar.over) return {value: bar.limit, name: `${bar.text} ${bar.bound}`};
    const other = result.contenders.find((contender) => contender.name === bar.over);
    if (!other || !other.value) return null;
    return {value: bar.limit * other.value.median, name: `${bar.text} ${bar.bound}`};
  }

  function card(result) {
    const host = element('div', {class: 'plot'});
    const limit = limitOf(result);
    const better = result.more_is_better ? 'higher' : 'lower';
    const foot = limit ? `Red line: ${limit.name}. ${result.note}` : result.note;
    const figure = element('figure', {class: 'card'}, [
      element('h4', {}, result.title),
      element('p', {class: 'axis'}, `${result.unit}; ${better} is better`),
      host,
      element('div', {class: 'foot'}, [element('p', {}, foot)]),
    ]);
    const draw = () => {
      const measured = result.contenders.filter((contender) => contender.value);
      if (measured.length === 0) {
        host.append(element('p', {class: 'notice'}, `Not measured: ${result.skipped || result.contenders[0].problem}`));
        return;
      }
      new BarChart(host, {
        rows: measured.map(({label, kind, value}) => ({
                             name: label,
                             colour: colours[kind],
                             bars: [
                               {from: 0, to: value.median, title: Format.number(value.median)},
                             ],
                             dots: value.min < value.max ? [value.min, value.max] : [],
                             value: Format.number(value.median),
                             below: value.min < value.max ?
                                 `${Format.number(value.min)} to ${Format.number(value.max)}` :
                                 '',
                           })),
        low: 0,
        high: 0,
        tick: Format.tick,
        limit,
      });
      for (const {label, problem, value} of result.contenders) {
        if (problem && !value) host.append(element('p', {class: 'note'}, `${label}: ${problem}`));
      }
    };
    return {figure, draw};
  }

  main.append(element('section', {class: 'study'}, [element('h2', {}, 'Bars'), verdictTable()]));
  const charts = element('div', {class: 'charts'});
  main.append(element('section', {class: 'study'}, [element('h2', {}, 'Rows'), charts]));
  for (const result of results) {
    const made = card(result);
    charts.append(made.figure);
    made.draw();  // in the document, where it has a width
  }
})();
