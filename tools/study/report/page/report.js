// Brings the page to life: charts into their places, one set of switches for all of them, theme, downloads, printing.
'use strict';

(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById('study-data').textContent);
  const hidden = new Set();
  const cards = [];  // every chart on the page: {card, host, chart, context, parts}

  // --- which algorithms are shown ---

  const chips = new Map();

  function setShown(name, shown) {
    if (shown)
      hidden.delete(name);
    else
      hidden.add(name);
    chips.get(name)?.setAttribute('aria-pressed', String(shown));
    for (const {chart} of cards) chart.show(name, shown);
    document.querySelectorAll('tr[data-algorithm]').forEach((row) => {
      if (row.dataset.algorithm === name) row.classList.toggle('off', !shown);
    });
  }

  let alone = null;  // the name that a double click singled out

  function clickChip(name) {
    if (alone !== name) alone = null;
    setShown(name, hidden.has(name));
  }

  // A double click comes after the click that toggled the name, so it sets every name anew.
  function doubleClickChip(name) {
    alone = alone === name ? null : name;
    for (const a of data.algorithms) setShown(a.name, alone === null || a.name === name);
  }

  function makeChips() {
    const host = document.getElementById('chips');
    for (const {name, colour} of data.algorithms) {
      const chip = element(
          'button', {type: 'button', class: 'chip', 'aria-pressed': 'true'},
          [element('i', {class: 'swatch', colour}), name]);
      chip.addEventListener('click', (event) => {
        if (event.detail < 2) clickChip(name);
      });
      chip.addEventListener('dblclick', () => doubleClickChip(name));
      chips.set(name, chip);
      host.append(chip);
    }
  }

  // --- charts ---

  function draw(entry) {
    entry.chart?.destroy();
    entry.host.replaceChildren();
    entry.chart = entry.card.make(entry.host, entry.context);
    const {card, context, parts} = entry;
    if (parts.axis) parts.axis.textContent = typeof card.axis === 'function' ? card.axis(context.choice) : card.axis;
    parts.how.textContent = typeof card.how === 'function' ? card.how(context.seed) : card.how;
  }

  function makeSwitch(labels, onChoose) {
    const buttons =
        labels.map((label, i) => element('button', {type: 'button', 'aria-pressed': String(i === 0)}, label));
    buttons.forEach((button, i) => button.addEventListener('click', () => {
      buttons.forEach((other) => other.setAttribute('aria-pressed', String(other === button)));
      onChoose(i);
    }));
    return element('div', {class: 'switch', role: 'group'}, buttons);
  }

  function addCard(card, place, context, name) {
    const host = element('div', {class: 'plot'});
    const how = element('p');
    const axis = element('p', {class: 'axis'});
    const link = element('a', {href: '#', title: 'The points of this chart as CSV'}, 'Data (CSV)');
    const entry =
        {card, host, chart: null, context: {...context, choice: 0, hidden, onToggle: setShown}, parts: {how, axis}};
    const top = element('div', {class: 'top'}, [element('h4', {}, card.title)]);
    if (card.switches) {
      top.append(makeSwitch(card.switches, (choice) => {
        entry.context.choice = choice;
        draw(entry);
      }));
    }
    link.addEventListener('click', (event) => {
      event.preventDefault();
      saveFile(`${fileName(name, card.title)}.csv`, 'text/csv', toCsv(...card.csv(entry.context.seed)));
    });
    place.append(element('figure', {class: 'card'}, [top, axis, host, element('div', {class: 'foot'}, [how, link])]));
    draw(entry);
    cards.push(entry);
    return entry;
  }

  function seedChoice(seeds, entries) {
    const select = element('select', {}, seeds.map((seed) => element('option', {value: String(seed)}, String(seed))));
    select.addEventListener('change', () => {
      for (const entry of entries) {
        entry.context.seed = seeds[select.selectedIndex];
        draw(entry);
      }
    });
    return element('label', {}, ['seed ', select]);
  }

  function fillSection(node) {
    const section = data.sections[Number(node.dataset.section)];
    const charts = new SectionCharts(section, data.algorithms);
    const seeds = charts.seeds();
    const context = {seed: seeds[0], sync: `time-${node.dataset.section}`};
    const timed = [];
    const all = charts.cards();
    for (const place of ['bars', 'flows', 'time']) {
      const host = node.querySelector(`[data-charts="${place}"]`);
      const mine = all.filter((card) => card.place === place);
      const group = node.querySelector(`[data-group="${place}"]`);
      if (group && mine.length > 0) group.hidden = false;
      for (const card of mine) {
        const entry = addCard(card, host, context, section.title);
        if (place === 'time') timed.push(entry);
      }
    }
    if (seeds.length > 1) node.querySelector('[data-group="time"] h3').append(seedChoice(seeds, timed));
    node.querySelector('[data-results]').addEventListener('click', (event) => {
      event.preventDefault();
      saveFile(`${fileName(section.title)}.json`, 'application/json', JSON.stringify(section.results, null, 2) + '\n');
    });
  }

  // --- tables and code ---

  function sortBy(head) {
    const table = head.closest('table');
    const body = table.tBodies[0];
    const index = head.cellIndex;
    const up = head.getAttribute('aria-sort') !== 'ascending';
    table.querySelectorAll('th[aria-sort]').forEach((other) => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const key = (row) => row.cells[index].dataset.value ?? row.cells[index].textContent;
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      const order = Number(x) - Number(y);
      return Number.isNaN(order) ? x.localeCompare(y) : order;
    };
    body.append(...[...body.rows].sort((a, b) => (up ? compare(a, b) : compare(b, a))));
  }

  function addCodeTools(pre) {
    const tools = element('div', {class: 'tools'});
    if (pre.dataset.save) {
      const save = element('button', {type: 'button', class: 'plain'}, 'Save');
      save.addEventListener('click', () => saveFile(pre.dataset.save, 'text/plain', pre.textContent));
      tools.append(save);
    }
    const copy = element('button', {type: 'button', class: 'plain'}, 'Copy');
    copy.addEventListener('click', () => {
      getSelection().selectAllChildren(pre);
      const done = navigator.clipboard ? navigator.clipboard.writeText(pre.textContent) :
                                         Promise.resolve(document.execCommand('copy'));
      done.then(() => {
        copy.textContent = 'Copied';
        setTimeout(() => (copy.textContent = 'Copy'), 1500);
      }, () => {});
    });
    tools.append(copy);
    pre.parentElement.append(tools);
  }

  // --- theme and paper ---

  const prefersDark = matchMedia('(prefers-color-scheme: dark)');
  let chosenTheme = null;  // what the reader asked for; null follows the system

  function setTheme(theme) {
    root.dataset.theme = theme;
    document.getElementById('theme').textContent = theme === 'dark' ? 'Light theme' : 'Dark theme';
    for (const {chart} of cards) chart.repaint();
  }

  const currentTheme = () => chosenTheme ?? (prefersDark.matches ? 'dark' : 'light');

  function followPrinting() {
    let opened = [];
    addEventListener('beforeprint', () => {
      opened = [...document.querySelectorAll('details:not([open])')];
      opened.forEach((details) => (details.open = true));
      setTheme('light');
    });
    addEventListener('afterprint', () => {
      opened.forEach((details) => (details.open = false));
      setTheme(currentTheme());
    });
  }

  if (location.hash === '#dark' || location.hash === '#light') chosenTheme = location.hash.slice(1);
  setTheme(currentTheme());
  const themeButton = document.getElementById('theme');
  themeButton.hidden = false;
  themeButton.addEventListener('click', () => {
    chosenTheme = root.dataset.theme === 'dark' ? 'light' : 'dark';
    setTheme(chosenTheme);
  });
  prefersDark.addEventListener('change', () => setTheme(currentTheme()));
  followPrinting();
  makeChips();
  document.querySelectorAll('section.study').forEach(fillSection);
  document.querySelectorAll('.sort').forEach(
      (button) => button.addEventListener('click', () => sortBy(button.closest('th'))));
  document.querySelectorAll('pre[data-copy]').forEach(addCodeTools);
  root.dataset.drawn = String(cards.length);  // for tests
})();
